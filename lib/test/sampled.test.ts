import { expect, test, vi } from 'vitest';
import { everyNth, sampled } from './sampled.ts';

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

test('repeats a selection with its seed, and selects other steps with another seed', () => {
  const select = (seed: string) => {
    vi.stubEnv('MUSTER_SAMPLE_SEED', seed);
    return sampled(steps, 3, false).join(' ');
  };
  expect(select('1')).toBe(select('1'));
  expect(new Set(Array.from({ length: 40 }, (_, seed) => select(String(seed)))).size).toBeGreaterThan(4);
  vi.unstubAllEnvs();
});

test('defines every third test, each test with at least one seed, and all tests in a soak run', () => {
  const defined = (seed: number, everyStep: boolean) => {
    vi.stubEnv('MUSTER_SAMPLE_SEED', String(seed));
    const isNext = everyNth(3, 'a', everyStep);
    return steps.slice(0, 9).filter(() => isNext());
  };
  const found = Array.from({ length: 30 }, (_, seed) => defined(seed, false));
  for (const numbers of found) expect(numbers).toHaveLength(3);
  expect(new Set(found.flat()).size).toBe(9);
  expect(defined(1, true)).toHaveLength(9);
  vi.unstubAllEnvs();
});
