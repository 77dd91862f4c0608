import { expect, test } from 'vitest';
import { isUnixTime } from './unix-time.ts';

test.each([0, 1_795_000_000, 0.5, -62_000_000_000, 8.64e12, -8.64e12])('accepts %s as a time', (at) => {
  expect(isUnixTime(at)).toBe(true);
  expect(() => new Date(at * 1000).toISOString()).not.toThrow();
});

test.each([1e300, 8.64e12 + 1, -8.64e12 - 1, Number.NaN, Number.POSITIVE_INFINITY, '1795000000', null, undefined])(
  'refuses %s as a time',
  (at) => {
    expect(isUnixTime(at)).toBe(false);
  },
);
