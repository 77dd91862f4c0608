import { limits } from '@muster/protocol/wire';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { backOff, type LinkEnd, noWaits, type Waits } from './backoff.ts';
import { restarts } from './test/restarts.ts';

const lost: LinkEnd = { livedMs: 0, retryAfterSecs: null, refused: null };
const lived = (livedMs: number): LinkEnd => ({ ...lost, livedMs });
const almostOne = 1 - Number.EPSILON;

/**
 * Returns the delay after each of the given links. Each link is established after the preceding delay and breaks
 * immediately.
 */
function waitsOf(ends: readonly LinkEnd[], random: number, from: Waits = noWaits): number[] {
  let waits = from;
  let now = 1_000_000;
  return ends.map((end) => {
    now += end.livedMs;
    const next = backOff(waits, end, random, now);
    waits = next.waits;
    now += next.waitMs;
    return Math.round(next.waitMs);
  });
}

describe('the backoff', () => {
  test('doubles the maximum delay from half a second up to a minute, and waits at least half of the maximum', () => {
    const ends = Array<LinkEnd>(10).fill(lost);
    expect(waitsOf(ends, almostOne)).toEqual([500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    expect(waitsOf(ends, 0)).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
  });

  test('resets the delay after a stable link, but not after a shorter one', () => {
    const tired: Waits = { attempts: 7, shortLinks: 3, linkedAt: 0 };
    expect(backOff(tired, lived(10_000), 0, 5e5).waits).toEqual({ attempts: 1, shortLinks: 0, linkedAt: 5e5 });
    expect(backOff(tired, lived(9_999), 0, 5e5).waits).toEqual({ attempts: 8, shortLinks: 4, linkedAt: 5e5 });
  });

  test('limits the delay to a few seconds shortly after a link, and to a minute after that', () => {
    const waits = waitsOf([lived(3_600_000), ...Array<LinkEnd>(200).fill(lost)], almostOne);
    const minutes = waits.map((_, i) => waits.slice(0, i).reduce((sum, wait) => sum + wait, 0) / 60_000);
    for (const [i, wait] of waits.entries())
      if (minutes[i]! < 5) expect(wait).toBeLessThanOrEqual(5_000);
      else if (minutes[i]! > 6) expect(wait).toBe(60_000);
  });

  test('increases the delay if links repeatedly break right after being established', () => {
    const waits = waitsOf(Array<LinkEnd>(30).fill(lived(1_000)), almostOne);
    expect(Math.max(...waits.slice(0, 10))).toBe(5_000);
    expect(waits.slice(20).every((wait) => wait === 60_000)).toBe(true);
  });

  test('increases the delay after a refusal', () => {
    const refused: LinkEnd = { ...lost, livedMs: 1_000, refused: 'protocol_violation' };
    expect(waitsOf([lived(3_600_000), ...Array<LinkEnd>(8).fill(refused)], almostOne).at(-1)).toBe(60_000);
  });

  test('waits only a few seconds for a busy orchestrator', () => {
    const busy: LinkEnd = { ...lost, refused: 'hello_timeout' };
    expect(waitsOf([lived(3_600_000), ...Array<LinkEnd>(8).fill(busy)], almostOne).slice(1)).toEqual(
      Array(8).fill(5_000),
    );
    expect(backOff(noWaits, busy, 0, 0).waitMs).toBe(2_500);
    // The orchestrator is still busy after five minutes.
    expect(waitsOf([lived(3_600_000), ...Array<LinkEnd>(100).fill(busy)], almostOne).at(-1)).toBe(60_000);
    const asking: LinkEnd = { ...busy, refused: 'unavailable', retryAfterSecs: 5 };
    expect(backOff(noWaits, asking, 0, 0).waitMs).toBe(5_000);
    expect(waitsOf([lived(3_600_000), ...Array<LinkEnd>(100).fill(asking)], almostOne).at(-1)).toBe(60_000);
  });

  test('waits at least 2.5 s for a busy orchestrator, and always at least half of the maximum delay', () => {
    const code = fc.constantFrom(null, 'hello_timeout', 'unavailable', 'draining', 'rejected', 'rate_exceeded');
    const retryAfter = fc.option(fc.double({ min: 0, max: 600, noNaN: true }), { nil: null });
    const waits = fc.record({ attempts: fc.nat(5_000), shortLinks: fc.nat(20), linkedAt: fc.option(fc.nat(1e6)) });
    const random = fc.double({ min: 0, max: almostOne, noNaN: true });
    fc.assert(
      fc.property(waits, code, retryAfter, random, fc.nat(1e6), (before, refused, retryAfterSecs, chance, later) => {
        const end = { livedMs: 0, retryAfterSecs, refused } as LinkEnd;
        const { waitMs } = backOff(before, end, chance, (before.linkedAt ?? 0) + later);
        const isBusy = refused === 'hello_timeout' || refused === 'unavailable' || refused === 'draining';
        if (isBusy) expect(waitMs).toBeGreaterThanOrEqual(limits.recentReconnectCapMs / 2);
        else if (retryAfterSecs === null) expect(waitMs).toBeGreaterThanOrEqual(limits.reconnectBaseMs / 2);
        if (retryAfterSecs !== null) expect(waitMs).toBeGreaterThanOrEqual(retryAfterSecs * 1000);
        const maxWaitMs = Math.max(limits.reconnectCapMs, (retryAfterSecs ?? 0) * 1100);
        expect(waitMs).toBeLessThanOrEqual(maxWaitMs);
      }),
    );
  });

  test('waits at least as long as the orchestrator requests', () => {
    expect(backOff(noWaits, { ...lost, retryAfterSecs: 600 }, 0, 0).waitMs).toBe(600_000);
    expect(backOff(noWaits, { ...lived(90_000), retryAfterSecs: 2 }, 0.5, 0).waitMs).toBe(2_100);
  });

  test('chooses a random delay in the upper half of the range after any number of failures', () => {
    fc.assert(
      fc.property(fc.nat(5_000), fc.double({ min: 0, max: almostOne, noNaN: true }), (attempts, random) => {
        const ceiling = Math.min(limits.reconnectCapMs, limits.reconnectBaseMs * 2 ** attempts);
        const { waitMs } = backOff({ ...noWaits, attempts }, lost, random, 0);
        expect(waitMs).toBeCloseTo((ceiling * (1 + random)) / 2, 5);
      }),
    );
  });
});

describe('reconnecting after several restarts of the orchestrator within a minute, in simulated time', () => {
  const percentile = (values: number[], share: number) =>
    values.sort((a, b) => a - b)[Math.ceil(values.length * share) - 1]!;

  test('reconnects 3 agents within 10 s after each of 3,000 random restart patterns', () => {
    const took: number[] = [];
    for (let seed = 1; seed <= 3_000; seed++) took.push(...restarts({ seed, agents: 3, backOff, first: noWaits }));
    expect(took).toHaveLength(9_000);
    expect(percentile(took, 0.99)).toBeLessThanOrEqual(10_000);
    expect(percentile(took, 1)).toBeLessThanOrEqual(10_000);
  });

  test('reconnects 10,000 agents behind one address within 120 s', () => {
    for (let seed = 1; seed <= 4; seed++) {
      const took = restarts({ seed, agents: 10_000, backOff, first: noWaits });
      expect(took).toHaveLength(10_000);
      expect(percentile(took, 1)).toBeLessThanOrEqual(120_000);
    }
  });

  test('reconnects 10,000 agents within 120 s even if the response to every tenth hello is too late', () => {
    for (let seed = 1; seed <= 2; seed++) {
      const took = restarts({ seed, agents: 10_000, backOff, first: noWaits, late: 0.1 });
      expect(took).toHaveLength(10_000);
      expect(percentile(took, 1)).toBeLessThanOrEqual(120_000);
    }
  });
});
