import { expect, test } from 'vitest';
import { ManualClock } from '../../../lib/test/manual-clock.ts';
import { LossNotices } from './loss-notices.ts';

/** Reports losses every 100 ms. @returns when they were announced, in milliseconds */
function announce(lossesUntil: number, then: number[] = []): number[] {
  const clock = new ManualClock();
  const startedAt = clock.monotonic();
  const at: number[] = [];
  const notices = new LossNotices(clock, () => at.push(clock.monotonic() - startedAt));
  const passed = () => clock.monotonic() - startedAt;
  for (; passed() <= lossesUntil; clock.advance(100)) notices.lost();
  for (const time of then) {
    clock.advance(time - passed());
    notices.lost();
  }
  clock.advance(60_000);
  return at;
}

test('announces a loss immediately, and further losses less and less often', () => {
  expect(announce(0)).toEqual([0]);
  expect(announce(200)).toEqual([0, 1_000]);
  expect(announce(60_000)).toEqual([0, 1_000, 3_000, 7_000, 15_000, 31_000, 47_000, 63_000]);
});

test('announces the first loss after a period without losses immediately', () => {
  expect(announce(200, [20_000, 20_100])).toEqual([0, 1_000, 20_000, 21_000]);
});
