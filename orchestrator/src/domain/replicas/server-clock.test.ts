import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { createServerClock } from './server-clock.ts';

const open = () => {
  const local = new ManualClock();
  const clock = createServerClock(local);
  /** Measures a server whose clock is ahead of the monotonic clock. */
  const measure = (aheadMs: number, tookMs = 0) => {
    const askedAt = local.monotonic();
    local.advance(tookMs);
    clock.measured(askedAt + tookMs / 2 + aheadMs, askedAt);
  };
  return { local, clock, measure, ahead: () => clock.now() - local.monotonic() };
};

test('shows the local time until the server has answered, then the server’s time', () => {
  const { local, clock, measure, ahead } = open();
  expect(clock.now()).toBe(local.now());
  measure(5_000, 200);
  expect(ahead()).toBe(5_000);
  local.jump(3_600_000);
  expect(ahead()).toBe(5_000);
});

test('corrects a small difference gradually, and a difference of more than a minute immediately', () => {
  const { local, measure, ahead } = open();
  measure(0);
  measure(-1_000);
  expect(ahead()).toBe(0);
  local.advance(5_000);
  expect(ahead()).toBe(-500);
  local.advance(60_000);
  expect(ahead()).toBe(-1_000);
  measure(3_600_000);
  expect(ahead()).toBe(3_600_000);
});

test('ignores an answer that took longer than a second, except for the first answer', () => {
  const { measure, ahead } = open();
  measure(2_000, 1_500);
  expect(ahead()).toBe(2_000);
  measure(500_000, 1_001);
  expect(ahead()).toBe(2_000);
});

test('never goes backward while the server’s clock is corrected by less than a minute', () => {
  const step = fc.record({ pass: fc.nat({ max: 5_000 }), ahead: fc.integer({ min: 0, max: 30_000 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { local, clock, measure } = open();
      let last = Number.NEGATIVE_INFINITY;
      for (const { pass, ahead } of steps) {
        local.advance(pass);
        measure(ahead);
        expect(clock.now()).toBeGreaterThanOrEqual(last);
        last = clock.now();
      }
    }),
  );
});
