import type { Meter } from '../meter.ts';

/**
 * Searches strings in linear time. The search functions of JavaScript engines take quadratic time for strings such as
 * `aaaa` and `aaab`: minutes for 1 MiB.
 */

/** Maximum number of comparisons for the engine's own search, which is faster for common strings. */
const maximumComparisons = 1 << 20;
/** For search strings shorter than this, the engine's own search takes linear time. */
const shortPart = 8;

/** Reports whether the engine's own search is fast. Otherwise, counts the steps of the linear search. */
function isFast(meter: Meter, text: string, part: string): boolean {
  if (part.length < shortPart || text.length * part.length <= maximumComparisons) return true;
  meter.spend((text.length + part.length) >> 5);
  return false;
}

/** Returns, for each position in a search string, the length of its longest proper prefix that ends there. */
function bordersOf(part: string): Int32Array {
  const borders = new Int32Array(part.length);
  let length = 0;
  for (let at = 1; at < part.length; at++) {
    while (length > 0 && part.charCodeAt(at) !== part.charCodeAt(length)) length = borders[length - 1] as number;
    if (part.charCodeAt(at) === part.charCodeAt(length)) length++;
    borders[at] = length;
  }
  return borders;
}

/**
 * Yields the positions of a search string. Occurrences may overlap. The search string must not be empty.
 * @see Knuth, Morris, Pratt: Fast Pattern Matching in Strings, 1977
 */
function* positionsOf(text: string, part: string, from = 0): Generator<number> {
  const borders = bordersOf(part);
  let length = 0;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    while (length > 0 && code !== part.charCodeAt(length)) length = borders[length - 1] as number;
    if (code === part.charCodeAt(length)) length++;
    if (length < part.length) continue;
    yield at - length + 1;
    length = borders[length - 1] as number;
  }
}

/** Returns the first position of a search string at or after `from`; -1 if there is none. */
export function firstIndex(meter: Meter, text: string, part: string, from = 0): number {
  if (isFast(meter, text, part)) return text.indexOf(part, from);
  return positionsOf(text, part, from).next().value ?? -1;
}

/** Returns the last position of a search string at or before `from`; -1 if there is none. */
export function lastIndex(meter: Meter, text: string, part: string, from = text.length): number {
  if (isFast(meter, text, part)) return text.lastIndexOf(part, from);
  let last = -1;
  for (const position of positionsOf(text, part)) {
    if (position > from) break;
    last = position;
  }
  return last;
}

/** Returns the parts of a string between separators. */
export function splitText(meter: Meter, text: string, separator: string): string[] {
  if (isFast(meter, text, separator)) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  for (const position of positionsOf(text, separator)) {
    if (position < start) continue;
    parts.push(text.slice(start, position));
    start = position + separator.length;
  }
  parts.push(text.slice(start));
  return parts;
}
