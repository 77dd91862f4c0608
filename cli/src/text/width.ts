import stringWidth from 'string-width';

/** Truncates and wraps text by its width on a terminal. */

// Color escapes. Muster writes no other escapes.
const paint = /\u001b\[[\d;]*m/y;

/**
 * Truncates text to `width` columns and appends an ellipsis. Preserves colors and resets them at the end.
 * @param width at least 1
 */
export function cutTo(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let result = '';
  let taken = 0;
  let isColored = false;
  for (let at = 0; at < text.length; ) {
    paint.lastIndex = at;
    const painted = paint.exec(text)?.[0];
    if (painted !== undefined) {
      result += painted;
      isColored = true;
      at += painted.length;
      continue;
    }
    const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
    const columns = stringWidth(character);
    if (taken + columns > width - 1) break;
    result += character;
    taken += columns;
    at += character.length;
  }
  return `${result}…${isColored ? '\u001b[0m' : ''}`;
}

/**
 * Wraps messages at spaces. Keeps indented lines unchanged. Puts a command at the end of a long line on its own
 * unwrapped line, so that it can be copied.
 * @param width columns of the terminal; null for no wrapping
 */
export function wrapMessage(text: string, width: number | null): string {
  if (width === null) return text;
  return text
    .split('\n')
    .map((line) => {
      if (line.startsWith(' ') || stringWidth(line) <= width) return line;
      const [, prose, command] = /^(.*:) (muster (?!.*\. \p{Lu}).*)$/u.exec(line) ?? [];
      return prose === undefined ? wrapWords(line, width, '  ') : `${wrapWords(prose, width, '  ')}\n  ${command}`;
    })
    .join('\n');
}

/**
 * Wraps text at spaces.
 * @param indent prefix of each line after the first
 */
export function wrapWords(text: string, width: number, indent: string): string {
  if (stringWidth(text) <= width) return text;
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line.trim() !== '' && stringWidth(longer) > width) {
      lines.push(line);
      line = indent + word;
    } else line = longer;
  }
  return [...lines, line].join('\n');
}
