import { Duration } from '@marcbachmann/cel-js/evaluator';
import type { Json } from '../../document.ts';
import type { Meter } from '../meter.ts';
import { ExpressionError, toCel } from '../values.ts';
import { versionOperators } from './versions.ts';

/** Standard methods, operators, and limits of CEL that the library lacks or implements differently. */

type Signature = readonly [signature: string, call: (meter: Meter, ...values: never[]) => unknown];

/** Characters that Unicode calls white space. JavaScript's `trim` has others. */
const blanks: ReadonlySet<string> = new Set(
  '\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
);

function trimmed(_: Meter, text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && blanks.has(text[start] as string)) start += 1;
  while (end > start && blanks.has(text[end - 1] as string)) end -= 1;
  return text.slice(start, end);
}

/** Returns the text with its ASCII letters converted. JavaScript converts all letters. */
function inAscii(meter: Meter, text: string, convert: (ascii: string) => string): string {
  if (!/\P{ASCII}/u.test(text)) return convert(text);
  meter.spend(text.length >> 2);
  return text.replace(/\p{ASCII}+/gu, convert);
}

/** Reads the JSON text in bytes. The library reads only the bytes that `bytes` returns, and only in Node. */
function jsonIn(meter: Meter, bytes: Uint8Array): unknown {
  meter.spend(bytes.length >> 2);
  try {
    return toCel(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Json);
  } catch {
    throw new ExpressionError('the bytes are not JSON in UTF-8');
  }
}

/** Methods that replace those of the library, which have the same name without `_`. */
export const correctedMethods: readonly Signature[] = [
  ['string.lowerAscii_(): string', (meter, text: string) => inAscii(meter, text, (ascii) => ascii.toLowerCase())],
  ['string.upperAscii_(): string', (meter, text: string) => inAscii(meter, text, (ascii) => ascii.toUpperCase())],
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

const largestInt = 2n ** 63n - 1n;
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
    throw new ExpressionError(`the number ${String(value).slice(0, 40)} is beyond the largest int`);
  }
  if (value instanceof Date) {
    if (!(value.getTime() >= firstTime && value.getTime() <= lastTime))
      throw new ExpressionError('the time is not within the years 1 to 9999');
  } else if (value instanceof Duration && (value.seconds > longest || value.seconds < -longest))
    throw new ExpressionError('the duration is longer than 10,000 years');
}
