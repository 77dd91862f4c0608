import { Duration } from '@marcbachmann/cel-js/evaluator';
import type { Meter } from '../meter.ts';
import { ExpressionError } from '../values.ts';
import { versionOperators } from './versions.ts';

/** Standard methods, operators, and limits of CEL that the library lacks or implements differently. */

type Signature = readonly [signature: string, call: (meter: Meter, ...values: never[]) => unknown];

/** Characters that Unicode calls white space. JavaScript's `trim` also removes the byte order mark, and keeps U+0085. */
const blanks: ReadonlySet<string> = new Set(
  '\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
);

function trimmed(meter: Meter, text: string): string {
  if (!text.includes('\u0085') && !text.includes('\ufeff')) return text.trim();
  let start = 0;
  let end = text.length;
  while (start < end && blanks.has(text[start] as string)) start += 1;
  while (end > start && blanks.has(text[end - 1] as string)) end -= 1;
  // A character takes about 15 ns.
  meter.spend((text.length - (end - start)) >> 3);
  return text.slice(start, end);
}

/** Characters of the text that are converted at once. */
const chunk = new Uint16Array(512);

/** Adds an offset to the 26 letters that begin with the code `first`. JavaScript converts all letters, not only these. */
function shifted(text: string, first: number, offset: number): string {
  let result = '';
  for (let at = 0; at < text.length; at += chunk.length) {
    const length = Math.min(chunk.length, text.length - at);
    for (let index = 0; index < length; index += 1) {
      const code = text.charCodeAt(at + index);
      chunk[index] = code >= first && code < first + 26 ? code + offset : code;
    }
    // Spreading the array would take ten times as long.
    result += Reflect.apply(String.fromCharCode, undefined, chunk.subarray(0, length));
  }
  return result;
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) > 127) return false;
  return true;
}

/** Maximum depth of lists and maps in JSON, because converting a value is recursive. */
const maximumDepth = 1000;

/** Returns the steps to charge for converting JSON, and the depth of its lists and maps. */
function measured(json: Uint8Array): { steps: number; depth: number } {
  let [lists, maps, items, depth, deepest] = [0, 0, 0, 0, 0];
  let isText = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (isText) {
      if (byte === 0x5c) at += 1;
      else if (byte === 0x22) isText = false;
    } else if (byte === 0x22) isText = true;
    else if (byte === 0x2c) items += 1;
    else if (byte === 0x5b || byte === 0x7b) {
      if (byte === 0x5b) lists += 1;
      else maps += 1;
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return { steps: lists + 3 * maps + (items >> 1), depth: deepest };
}

/** A whole number that may lose digits as a JavaScript number. */
const longNumber = /(?:^|[[:,\s])-?\d{16}/;

/** Keeps the digits of a whole number. @param context has no `source` in old browsers */
const withDigits = (_: string, value: unknown, context?: { readonly source?: string }): unknown =>
  typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? '')
    ? BigInt(context?.source ?? 0)
    : value;

/** Reads the JSON text in bytes. The library reads only the bytes that `bytes` returns, and only in Node. */
function jsonIn(meter: Meter, bytes: Uint8Array): unknown {
  const { steps, depth } = measured(bytes);
  meter.spend(steps);
  if (depth > maximumDepth)
    throw new ExpressionError(`the JSON has more than ${maximumDepth} levels of lists and maps`);
  const text = orRefuse(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  const isLong = longNumber.test(text);
  // `withDigits` takes about 0.4 µs for each value, not only for numbers.
  if (isLong) meter.spend(8 * steps);
  return fromJson(orRefuse((): unknown => (isLong ? JSON.parse(text, withDigits) : JSON.parse(text))));
}

function orRefuse<T>(read: () => T): T {
  try {
    return read();
  } catch {
    throw new ExpressionError('the bytes are not JSON in UTF-8');
  }
}

function fromJson(value: unknown): unknown {
  if (typeof value === 'number') {
    if (Number.isSafeInteger(value)) return BigInt(value);
    if (Number.isFinite(value)) return value;
    throw new ExpressionError('the JSON has a number that is too large');
  }
  requireRange(value);
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== 'object' || value === null) return value;
  const map = new Map<string, unknown>();
  for (const key of Object.keys(value)) map.set(key, fromJson((value as Readonly<Record<string, unknown>>)[key]));
  return map;
}

/** Methods that replace those of the library, which have the same name without `_`. */
export const correctedMethods: readonly Signature[] = [
  ['string.lowerAscii_(): string', (_, text: string) => (isAscii(text) ? text.toLowerCase() : shifted(text, 65, 32))],
  ['string.upperAscii_(): string', (_, text: string) => (isAscii(text) ? text.toUpperCase() : shifted(text, 97, -32))],
  ['string.trim_(): string', trimmed],
  ['bytes.json_(): dyn', jsonIn],
];

/**
 * Returns the bytes of a literal such as `b"é"`: the UTF-8 bytes of its characters, and one byte for each escape.
 * @param read the bytes that the library has read: the low byte of each UTF-16 unit, and one byte for each escape
 */
export function literalBytes(literal: string, read: Uint8Array): Uint8Array {
  const quotes = /^b("""|'''|.)/i.exec(literal)?.[1]?.length ?? 0;
  const text = literal.slice(1 + quotes, -quotes);
  if (!/\P{ASCII}/u.test(text)) return read;
  const escapes = /\\(?:[xX]..|[0-7]{3}|.)/y;
  const bytes: number[] = [];
  let at = 0;
  for (let index = 0; at < text.length; index += 1) {
    escapes.lastIndex = at;
    const escaped = escapes.exec(text)?.[0];
    if (escaped === undefined) {
      const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
      bytes.push(...new TextEncoder().encode(character));
      at += character.length;
      index += character.length - 1;
    } else {
      bytes.push(read[index] ?? 0);
      at += escaped.length;
    }
  }
  return Uint8Array.from(bytes);
}

function orderOf(one: Uint8Array, other: Uint8Array): number {
  const common = Math.min(one.length, other.length);
  for (let at = 0; at < common; at += 1) if (one[at] !== other[at]) return (one[at] ?? 0) - (other[at] ?? 0);
  return one.length - other.length;
}

export const bytesOperators = versionOperators
  .filter(([operator]) => operator !== '==')
  .map(([operator, holds]): [signature: string, compare: (one: Uint8Array, other: Uint8Array) => boolean] => [
    `bytes ${operator} bytes`,
    (one, other) => holds(orderOf(one, other)),
  ]);

export const largestInt = 2n ** 63n - 1n;
export const beyondInt = (value: bigint): string =>
  `the number ${String(value).slice(0, 40)} is beyond the largest int`;
/** The first and the last millisecond of a timestamp. */
const firstTime = Date.parse('0001-01-01T00:00:00Z');
const lastTime = Date.parse('9999-12-31T23:59:59.999Z');
/** Maximum number of seconds of a duration: 10,000 years. */
const longest = 315_576_000_000n;

/**
 * Checks the range of an int, a timestamp, or a duration, because not all operators and functions of the library do so.
 * @throws ExpressionError if the value is outside of the range of its type
 */
export function requireRange(value: unknown): void {
  if (typeof value === 'bigint') {
    if (value <= largestInt && value >= -largestInt - 1n) return;
    throw new ExpressionError(beyondInt(value));
  }
  if (value instanceof Date) {
    if (!(value.getTime() >= firstTime && value.getTime() <= lastTime))
      throw new ExpressionError('the time is not within the years 1 to 9999');
  } else if (value instanceof Duration && (value.seconds > longest || value.seconds < -longest))
    throw new ExpressionError('the duration is longer than 10,000 years');
}
