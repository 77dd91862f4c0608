import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backOff } from './backoff.ts';

const lost = { livedMs: 0, retryAfterSecs: null };
const almostOne = 1 - Number.EPSILON;

describe('backing off', () => {
  it('doubles its ceiling from half a second to a minute', () => {
    const ceilings: number[] = [];
    let attempts = 0;
    for (let i = 0; i < 10; i++) {
      const next = backOff(attempts, lost, almostOne);
      ceilings.push(Math.round(next.waitMs));
      attempts = next.attempts;
    }
    expect(ceilings).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  });

  it('begins anew after a stable minute, not after a shorter link', () => {
    expect(backOff(7, { livedMs: 60_000, retryAfterSecs: null }, almostOne)).toMatchObject({ attempts: 1 });
    expect(backOff(7, { livedMs: 59_999, retryAfterSecs: null }, almostOne)).toMatchObject({ attempts: 8 });
  });

  it('waits at least as long as it was asked to', () => {
    expect(backOff(0, { livedMs: 0, retryAfterSecs: 600 }, 0).waitMs).toBe(600_000);
    expect(backOff(9, { livedMs: 90_000, retryAfterSecs: 2 }, 0.5).waitMs).toBe(2_100);
  });

  it('jitters over the whole range below the ceiling, however often it failed', () => {
    fc.assert(
      fc.property(fc.nat(5_000), fc.double({ min: 0, max: almostOne, noNaN: true }), (attempts, random) => {
        const ceiling = Math.min(60_000, 500 * 2 ** attempts);
        const { waitMs } = backOff(attempts, lost, random);
        expect(waitMs).toBeCloseTo(random * ceiling, 5);
      }),
    );
  });
});
