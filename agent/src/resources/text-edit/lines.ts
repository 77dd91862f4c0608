/**
 * Splits and edits the text of a file without changing other bytes. Invalid UTF-8, the ending of each line, and a
 * missing final line break are preserved. Each character represents one byte (latin1). `readable` converts `text` for
 * display.
 */

export interface TextLine {
  text: string;
  end: '' | '\n' | '\r\n';
}

type LineEnd = '\n' | '\r\n';

export const splitLines = (bytes: Buffer): TextLine[] => splitText(bytes.toString('latin1'));

export const joinLines = (lines: readonly TextLine[]): Buffer => Buffer.from(joinText(lines), 'latin1');

/** Splits text that may contain any characters. */
export function splitText(all: string): TextLine[] {
  const lines: TextLine[] = [];
  let start = 0;
  for (let at = all.indexOf('\n'); at !== -1; at = all.indexOf('\n', start)) {
    const cr = at > start && all.charCodeAt(at - 1) === 13;
    lines.push({ text: all.slice(start, cr ? at - 1 : at), end: cr ? '\r\n' : '\n' });
    start = at + 1;
  }
  if (start < all.length) lines.push({ text: all.slice(start), end: '' });
  return lines;
}

export const joinText = (lines: readonly TextLine[]): string => lines.map(({ text, end }) => text + end).join('');

/** Converts declared text to the encoding of `TextLine`. */
export const inBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** Converts text to UTF-8 for display and for regular expressions. */
export const readable = (text: string): string =>
  /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text, 'latin1').toString('utf8');

/** Returns the line ending of the last line that has one or, if no line has one, `otherwise`. */
export function endingOf(lines: readonly TextLine[], otherwise: LineEnd = '\n'): LineEnd {
  const last = lines.at(-1);
  const ended = last?.end === '' ? lines.at(-2) : last;
  return ended === undefined || ended.end === '' ? otherwise : ended.end;
}

/** The position of lines, with their neighbors, so that it can be found again after the file has changed. */
export interface Position {
  index: number;
  /** Null at the start and end of the file. */
  above: string | null;
  below: string | null;
  /** Ending of the line above or, if there is none, the line ending of the file. */
  ending: LineEnd;
}

/** @param count number of lines at the position; 0 for a gap */
export const positionOf = (lines: readonly TextLine[], index: number, count: number): Position => ({
  index,
  above: lines[index - 1]?.text ?? null,
  below: lines[index + count]?.text ?? null,
  ending: lines[index - 1]?.end || endingOf(lines),
});

/** Reports whether the lines at `index` are at the recorded position. */
export const isAt = (lines: readonly TextLine[], index: number, count: number, position: Position): boolean =>
  position.index === index ||
  (lines[index - 1]?.text ?? null) === position.above ||
  (lines[index + count]?.text ?? null) === position.below;

/**
 * Finds the gap that best matches a recorded position: in order of preference, between both neighbors, below the upper
 * one, or above the lower one. Among equal matches, returns the nearest.
 * @returns null if both neighbors are missing
 */
export function findPosition(lines: readonly TextLine[], position: Position): number | null {
  let best: number | null = null;
  let bestRank = 0;
  for (let index = 0; index <= lines.length; index++) {
    const above = (lines[index - 1]?.text ?? null) === position.above;
    const below = (lines[index]?.text ?? null) === position.below;
    const rank = above && below ? 3 : above ? 2 : below ? 1 : 0;
    if (rank === 0 || rank < bestRank) continue;
    const nearer = best === null || Math.abs(index - position.index) < Math.abs(best - position.index);
    if (rank > bestRank || nearer) best = index;
    bestRank = rank;
  }
  return best;
}

/**
 * Inserts lines into a gap. A file without a final line break still has none if the new lines are the last.
 * @param ends endings of the new lines; the default is the line ending of the file
 */
export function insertLines(
  lines: readonly TextLine[],
  index: number,
  texts: readonly string[],
  position?: { ending: LineEnd; ends?: readonly TextLine['end'][] },
): TextLine[] {
  if (texts.length === 0) return [...lines];
  const ending = endingOf(lines, position?.ending);
  const isLast = index === lines.length;
  const unended = lines.at(-1)?.end === '';
  const before = lines.slice(0, index);
  if (isLast && unended) before.push(ended((before.pop() as TextLine).text, position?.ending ?? ending));
  const added = texts.map((text, i): TextLine => {
    const last = isLast && i === texts.length - 1;
    const own = position?.ends?.[i];
    if (last && own === undefined && unended) return { text, end: '' };
    if (last && own === '') return { text, end: own };
    return ended(text, own || ending);
  });
  return [...before, ...added, ...lines.slice(index)];
}

/**
 * Returns a line. If the text ends in a carriage return, a line feed would form CRLF with it, so the ending is CRLF.
 */
const ended = (text: string, end: LineEnd): TextLine => ({ text, end: text.endsWith('\r') ? '\r\n' : end });

/**
 * Removes lines. A missing final line break stays missing, unless the last remaining line is empty and needs the line
 * break to exist.
 */
export function removeLines(lines: readonly TextLine[], indexes: ReadonlySet<number>): TextLine[] {
  const remaining = lines.filter((_, index) => !indexes.has(index));
  const last = remaining.at(-1);
  if (last !== undefined && last.text !== '' && last.end !== '' && lines.at(-1)?.end === '')
    remaining[remaining.length - 1] = { ...last, end: '' };
  return remaining;
}
