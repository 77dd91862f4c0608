import type { Fault } from '@muster/protocol';
import stringWidth from 'string-width';
import { sanitiseLine } from './sanitize.ts';
import type { Style } from './style.ts';

/** Lines shown before and after the one with the fault. */
const around = 2;
/** Characters of a line that are shown, where there is no limit. */
const longest = 120;

/**
 * The lines around a fault, the place below marked by a caret.
 * @param source the text as it was read
 * @returns empty when the fault has no place in it
 */
export function codeFrame(
  source: string,
  { line, column = 1 }: Pick<Fault, 'line' | 'column'>,
  { color, width }: Pick<Style, 'color' | 'width'>,
): string {
  const lines = source.split(/\r\n|\r|\n/);
  // A file that ends with a newline has no further line.
  if (lines.at(-1) === '') lines.pop();
  if (line === undefined || line < 1 || line > lines.length) return '';
  const first = Math.max(1, line - around);
  const last = Math.min(lines.length, line + around);
  const gutter = String(last).length;
  // Of long lines all show the same piece, so that what stands above another does so here.
  const room = Math.max(10, Math.min(longest, width ?? longest) - gutter - 5 - 2);
  const from = Math.max(0, column - 1 - Math.floor((room * 2) / 3));
  const piece = (text: string) => {
    const kept = text.slice(from, from + room);
    return `${from > 0 && text.length > 0 ? '…' : ''}${sanitiseLine(kept)}${text.length > from + kept.length ? '…' : ''}`;
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
