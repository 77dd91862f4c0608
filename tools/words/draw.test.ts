import { expect, test } from 'vitest';
import { draw } from './draw.ts';

const values = Array.from({ length: 100 }, (_, index) => index);

test('draws the same values for the same seed, and different values for another seed', () => {
  expect(draw(values, 10, 1)).toEqual(draw(values, 10, 1));
  expect(draw(values, 10, 1)).not.toEqual(draw(values, 10, 2));
});

test('draws each value at most once, in the order of the values', () => {
  const drawn = draw(values, 50, 7);
  expect(new Set(drawn).size).toBe(50);
  expect(drawn).toEqual(drawn.toSorted((a, b) => a - b));
});

test('draws all values if there are fewer than requested', () => {
  expect(draw([1, 2, 3], 10, 1)).toEqual([1, 2, 3]);
  expect(draw([], 10, 1)).toEqual([]);
});

test('draws all values about equally often', () => {
  const counts = new Map<number, number>();
  for (let seed = 0; seed < 2000; seed++)
    for (const value of draw(values, 10, seed)) counts.set(value, (counts.get(value) ?? 0) + 1);
  // The expected count is 200, and the bound is five times the standard error.
  for (const value of values) expect(Math.abs((counts.get(value) ?? 0) - 200)).toBeLessThan(70);
});
