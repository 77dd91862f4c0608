import { expect, test } from 'vitest';
import { bytesOfHex, hexOf } from './bytes.ts';
import { derInteger, derNumber, derSequence, derTags, derValue, derValues } from './der.ts';

test.each([
  [0, '020100'],
  [127, '02017f'],
  [128, '02020080'],
  [16_384, '02024000'],
  [8_388_608, '020400800000'],
])('writes and reads the integer %i', (value, hex) => {
  expect(hexOf(derInteger(value))).toBe(hex);
  expect(derNumber(derValues(bytesOfHex(hex)), 0)).toBe(value);
});

test('writes and reads short and long values', () => {
  for (const length of [0, 127, 128, 256, 65_535]) {
    const content = new Uint8Array(length).fill(7);
    const [value] = derValues(derValue(derTags.octets, content));
    expect(value).toEqual({ tag: derTags.octets, content });
  }
  expect(() => derValue(derTags.octets, new Uint8Array(65_536))).toThrow(RangeError);
});

test('joins values in a sequence and refuses a truncated one', () => {
  const bytes = derSequence(derInteger(1), derValue(derTags.octets, Uint8Array.of(2)));
  expect(hexOf(bytes)).toBe('3006020101040102');
  expect(() => derValues(bytes.subarray(0, 7))).toThrow(RangeError);
});
