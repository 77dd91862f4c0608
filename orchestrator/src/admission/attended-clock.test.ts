import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AttendedClock } from './attended-clock.ts';

const maxMs = 500;

test('counts all elapsed time, but at most the maximum per tick while the process is suspended', () => {
  let now = 1_000;
  const clock = new AttendedClock({ monotonic: () => now }, maxMs);
  const startedAt = clock.monotonic();
  for (let i = 0; i < 8; i++) {
    now += 250;
    clock.tick();
  }
  expect(clock.monotonic() - startedAt).toBe(2_000);
  now += 3_600_000;
  expect(clock.monotonic() - startedAt).toBe(2_500);
  clock.tick();
  now += 100;
  expect(clock.monotonic() - startedAt).toBe(2_600);
});

test('never decreases, never gets ahead of real time, and counts at most the maximum per tick', () => {
  const steps = fc.array(fc.record({ ms: fc.nat(100_000), ticks: fc.boolean() }), { maxLength: 50 });
  fc.assert(
    fc.property(steps, (all) => {
      let now = 0;
      let ticks = 0;
      const clock = new AttendedClock({ monotonic: () => now }, maxMs);
      const startedAt = clock.monotonic();
      let before = startedAt;
      for (const { ms, ticks: isTick } of all) {
        now += ms;
        if (isTick) {
          clock.tick();
          ticks++;
        }
        const after = clock.monotonic();
        expect(after).toBeGreaterThanOrEqual(before);
        expect(after - startedAt).toBeLessThanOrEqual(Math.min(now, (ticks + 1) * maxMs));
        before = after;
      }
    }),
  );
});
