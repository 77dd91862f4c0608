import { availableParallelism } from 'node:os';
import { expect, test } from 'vitest';
import { FairTime, fairShare } from './fair-time.ts';

test.each([
  [1, 2, 1],
  [2, 2, 1],
  [8, 2, 0.25],
  [0, 2, 1],
  [400, 2, 0.1],
])('gives each of %i runnable processes on %i processors a share of %f', (runnable, processors, share) => {
  expect(fairShare(runnable, processors)).toBe(share);
});

test('slows down fair time while more processes compete than there are processors', () => {
  let now = 0;
  let runnable = 1;
  const time = new FairTime(
    () => now,
    () => runnable,
  );
  now = 1_000;
  expect(time.elapsedMs()).toBe(1_000);
  runnable = 10 * availableParallelism();
  now = 2_000;
  expect(time.elapsedMs()).toBeCloseTo(1_100);
});

test('measures fair time on this machine', () => {
  const time = new FairTime();
  const first = time.elapsedMs();
  expect(time.elapsedMs()).toBeGreaterThan(first);
});
