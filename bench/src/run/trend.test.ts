import { expect, test } from 'vitest';
import { growthBetween, trend } from './trend.ts';

test('compares the medians of the last and the first third', () => {
  expect(trend([10, 10, 99, 50, 50, 50, 20, 20, 1])).toBe(2);
  expect(trend([4, 9, 4])).toBe(1);
  expect(trend([4, 9])).toBeNaN();
});

test('returns 1 for equal growth in both halves, and more than 1 for faster growth in the second half', () => {
  expect(growthBetween([100, 110, 120, 130, 140])).toBe(1);
  expect(growthBetween([100, 110, 120, 140, 160])).toBe(2);
  // Ignores the last value if the number of values is even.
  expect(growthBetween([100, 110, 120, 999])).toBe(1);
  expect(growthBetween([100, 110])).toBeNaN();
});
