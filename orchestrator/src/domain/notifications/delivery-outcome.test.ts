import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { afterFailure } from './delivery-outcome.ts';

const fresh = { failures: 0, failing_since: null, attempts: 0 };
const down = { status: null, reason: 'the connection was refused' } as const;
const answered = (status: number, retryAfterMs: number | null = null) => ({ status, retryAfterMs });
const waitOf = (
  before: typeof fresh | { failures: number; failing_since: null; attempts: number },
  random: number,
  attempt = down,
) => afterFailure(before, attempt, 0, random).retryAtMs;

describe('afterFailure', () => {
  test('doubles the backoff up to ten minutes, and randomizes half of it', () => {
    const waits = Array.from({ length: 12 }, (_, failures) => waitOf({ ...fresh, failures }, 1));
    expect(waits.slice(0, 5)).toEqual([2_000, 4_000, 8_000, 16_000, 32_000]);
    expect(waits.at(-1)).toBe(600_000);
    expect(waitOf(fresh, 0)).toBe(1_000);
    expect(waitOf({ ...fresh, failures: 1e9 }, 1)).toBe(600_000);
  });

  test('waits for at least half the backoff and at most an hour, even if the receiver requests another delay', () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.nat(),
        (failures, random, retryAfterMs) => {
          const { retryAtMs } = afterFailure({ ...fresh, failures }, answered(429, retryAfterMs), 0, random);
          expect(retryAtMs).toBeGreaterThanOrEqual(1_000);
          expect(retryAtMs).toBeLessThanOrEqual(3_600_000);
          expect(retryAtMs).toBeGreaterThanOrEqual(Math.min(retryAfterMs, 3_600_000));
        },
      ),
    );
  });

  test('reports a failing channel only once', () => {
    const reports = Array.from(
      { length: 8 },
      (_, failures) => afterFailure({ ...fresh, failures }, down, 0, 0).reportFailing,
    );
    expect(reports.indexOf(true)).toBe(4);
    expect(afterFailure({ failures: 9, failing_since: 1, attempts: 9 }, down, 0, 0).reportFailing).toBe(false);
  });

  test('drops a message only if the receiver rejects it repeatedly', () => {
    const dropped = (status: number | null, attempts: number) =>
      afterFailure({ ...fresh, attempts }, status === null ? down : answered(status), 0, 0).drop;
    expect([0, 1, 2].map((attempts) => dropped(400, attempts))).toEqual([false, false, true]);
    for (const status of [401, 403, 404, 410, 429, 500, 503, 302]) expect(dropped(status, 99)).toBe(false);
    expect(dropped(null, 99)).toBe(false);
  });
});
