/**
 * The text of a file as lines, byte for byte: what is no UTF-8, each line's own ending and a missing last one stay as
 * they are. A character stands for a byte, so `text` is not for people; `readable` is.
 */

export interface TextLine {
  text: string;
  end: '' | '\n' | '\r\n';
}

type LineEnd = '\n' | '\r\n';

export function splitLines(bytes: Buffer): TextLine[] {
  const all = bytes.toString('latin1');
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

export const joinLines = (lines: readonly TextLine[]): Buffer =>
  Buffer.from(lines.map(({ text, end }) => text + end).join(''), 'latin1');

/** What is declared, in the characters of `TextLine`. */
export const inBytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** For people and for regular expressions. */
export const readable = (text: string): string =>
  /^[\x00-\x7f]*$/.test(text) ? text : Buffer.from(text, 'latin1').toString('utf8');

/** How lines end in this file: as the last one does that has an end. */
export function endingOf(lines: readonly TextLine[], otherwise: LineEnd = '\n'): LineEnd {
  const last = lines.at(-1);
  const ended = last?.end === '' ? lines.at(-2) : last;
  return ended === undefined || ended.end === '' ? otherwise : ended.end;
}

/** Where lines stood: what was around them, so that they find back although the file changed meanwhile. */
export interface Place {
  index: number;
  /** Null at the start and end of the file. */
  above: string | null;
  below: string | null;
  /** How the line above ended, or else the others of the file. */
  ending: LineEnd;
}

/** @param count lines that stand at the place; 0 for a gap */
export const placeOf = (lines: readonly TextLine[], index: number, count: number): Place => ({
  index,
  above: lines[index - 1]?.text ?? null,
  below: lines[index + count]?.text ?? null,
  ending: lines[index - 1]?.end || endingOf(lines),
});

/** Whether lines that stand here now stand where the others did. */
export const isAt = (lines: readonly TextLine[], index: number, count: number, place: Place): boolean =>
  place.index === index ||
  (lines[index - 1]?.text ?? null) === place.above ||
  (lines[index + count]?.text ?? null) === place.below;

/**
 * The gap that is most like where lines stood: between the same neighbours, else below the same one, else above it;
 * among equals the nearest.
 * @returns null when none of the neighbours is there any more
 */
export function findPlace(lines: readonly TextLine[], place: Place): number | null {
  let best: number | null = null;
  let bestRank = 0;
  for (let index = 0; index <= lines.length; index++) {
    const above = (lines[index - 1]?.text ?? null) === place.above;
    const below = (lines[index]?.text ?? null) === place.below;
    const rank = above && below ? 3 : above ? 2 : below ? 1 : 0;
    if (rank === 0 || rank < bestRank) continue;
    const nearer = best === null || Math.abs(index - place.index) < Math.abs(best - place.index);
    if (rank > bestRank || nearer) best = index;
    bestRank = rank;
  }
  return best;
}

/**
 * Puts lines into a gap. A file whose last line has no end keeps that way when they come last.
 * @param ends of the new lines, where they are known; else as the file has them
 */
export function insertLines(
  lines: readonly TextLine[],
  index: number,
  texts: readonly string[],
  place?: { ending: LineEnd; ends?: readonly TextLine['end'][] },
): TextLine[] {
  if (texts.length === 0) return [...lines];
  const ending = endingOf(lines, place?.ending);
  const isLast = index === lines.length;
  const unended = lines.at(-1)?.end === '';
  const before = lines.slice(0, index);
  if (isLast && unended) before.push(ended((before.pop() as TextLine).text, place?.ending ?? ending));
  const added = texts.map((text, i): TextLine => {
    const last = isLast && i === texts.length - 1;
    const own = place?.ends?.[i];
    if (last && own === undefined && unended) return { text, end: '' };
    if (last && own === '') return { text, end: own };
    return ended(text, own || ending);
  });
  return [...before, ...added, ...lines.slice(index)];
}

/** A line feed after a text that ends in a carriage return would take that for its own. */
const ended = (text: string, end: LineEnd): TextLine => ({ text, end: text.endsWith('\r') ? '\r\n' : end });

/** Takes lines out. A file whose last line has no end keeps that way, unless an empty line would vanish with its end. */
export function removeLines(lines: readonly TextLine[], indexes: ReadonlySet<number>): TextLine[] {
  const kept = lines.filter((_, index) => !indexes.has(index));
  const last = kept.at(-1);
  if (last !== undefined && last.text !== '' && last.end !== '' && lines.at(-1)?.end === '')
    kept[kept.length - 1] = { ...last, end: '' };
  return kept;
}
