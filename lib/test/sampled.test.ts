import { expect, test } from 'vitest';
import { sampled } from './sampled.ts';

const steps = Array.from({ length: 27 }, (_, i) => i + 1);

test('covers every step over several runs', () => {
  const tried = new Set<number>();
  for (let random = 0; random < 1; random += 0.01) {
    const sample = sampled(steps, 8, false, random);
    expect(new Set(sample).size).toBe(8);
    for (const step of sample) tried.add(step);
  }
  expect([...tried].toSorted((a, b) => a - b)).toEqual(steps);
});

test('returns all steps if there are few, or in a soak run', () => {
  expect(sampled(steps, 27, false)).toEqual(steps);
  expect(sampled(steps, 8, true)).toEqual(steps);
});
