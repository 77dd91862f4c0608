import type { Fault } from '@muster/protocol';
import stringWidth from 'string-width';
import { sanitiseLine } from './sanitize.ts';
import type { Style } from './style.ts';

/** Number of lines shown before and after the faulty line. */
const around = 2;
/** Maximum number of characters of a line to show if there is no terminal. */
const longest = 120;

/**
 * Returns the lines around an error, with a caret below its position.
 * @param source the parsed text
 * @returns no lines if the error has no position in the text
 */
export function codeFrame(
  source: string,
  { line, column = 1 }: Pick<Fault, 'line' | 'column'>,
  { color, width }: Pick<Style, 'color' | 'width'>,
): string {
  const lines = source.split(/\r\n|\r|\n/);
  // A trailing newline does not start another line.
  if (lines.at(-1) === '') lines.pop();
  if (line === undefined || line < 1 || line > lines.length) return '';
  const first = Math.max(1, line - around);
  const last = Math.min(lines.length, line + around);
  const gutter = String(last).length;
  // Cuts all long lines at the same column, so that they stay aligned.
  const textWidth = Math.max(10, Math.min(longest, width ?? longest) - gutter - 5 - 2);
  const from = Math.max(0, column - 1 - Math.floor((textWidth * 2) / 3));
  const piece = (text: string) => {
    const visible = text.slice(from, from + textWidth);
    return `${from > 0 && text.length > 0 ? '…' : ''}${sanitiseLine(visible)}${text.length > from + visible.length ? '…' : ''}`;
  };
  const shown: string[] = [];
  for (let no = first; no <= last; no++) {
    const text = lines[no - 1] ?? '';
    const margin = `${no === line ? '>' : ' '} ${String(no).padStart(gutter)} | `;
    shown.push(`${no === line ? color.red(margin) : color.dim(margin)}${piece(text)}`.trimEnd());
    if (no !== line) continue;
    const before = `${from > 0 ? '…' : ''}${sanitiseLine(text.slice(from, column - 1))}`;
    shown.push(`${color.dim(`  ${' '.repeat(gutter)} | `)}${' '.repeat(stringWidth(before))}${color.red('^')}`);
  }
  return shown.join('\n');
}
