import fc from 'fast-check';

const firstSurrogate = 0xd800;
const surrogates = 0x800;

const toText = (index: number): string => String.fromCodePoint(index < firstSurrogate ? index : index + surrogates);

function toIndex(text: unknown): number {
  const point = typeof text === 'string' ? (text.codePointAt(0) ?? Number.NaN) : Number.NaN;
  if (Number.isNaN(point) || text !== String.fromCodePoint(point)) throw new Error('not one code point');
  return point < firstSurrogate ? point : point - surrogates;
}

/**
 * Any code point except surrogates, as text, for strings with any characters. fast-check's unit `binary` generates the
 * same strings, but builds a table of all code points, which takes a second of CPU time per process.
 */
export const codePoint: fc.Arbitrary<string> = fc.nat({ max: 0x10ffff - surrogates }).map(toText, toIndex);
