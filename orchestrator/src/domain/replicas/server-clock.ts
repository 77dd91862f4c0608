import type { Clock } from '../../../../lib/src/clock.ts';

/**
 * The time of the database server, which decides expiry for all processes on the database. Runs on the monotonic clock
 * of this process, so that changes of the local wall clock have no effect.
 */
export interface ServerClock extends Clock {
  /**
   * Records an answer of the server.
   * @param time the server's time, in Unix milliseconds
   * @param askedAt monotonic time before the query
   */
  measured(time: number, askedAt: number): void;
}

/** Milliseconds of correction for each millisecond that passes, so that the time never goes back. */
const slewRate = 0.1;
/** A larger difference, in milliseconds, is corrected at once, because one of the clocks was wrong. */
const maxSlewMs = 60_000;
/** Maximum response time, in milliseconds. A slower response says little about the server's clock. */
const maxRoundTripMs = 1_000;

/** Creates a clock that shows the local time until the server's time was measured for the first time. */
export function createServerClock(local: Clock): ServerClock {
  /** Server time minus monotonic time: the value shown at `at`, and the measured one that it approaches. */
  let offset: { shown: number; at: number; measured: number } | null = null;
  const shownAt = (at: number): number => {
    const { shown, at: from, measured } = offset!;
    const correction = (at - from) * slewRate;
    return Math.abs(measured - shown) <= correction ? measured : shown + Math.sign(measured - shown) * correction;
  };
  return {
    now: () => (offset === null ? local.now() : Math.floor(local.monotonic() + shownAt(local.monotonic()))),
    monotonic: () => local.monotonic(),
    after: (ms, action) => local.after(ms, action),
    measured(time, askedAt) {
      const at = local.monotonic();
      if (offset !== null && at - askedAt > maxRoundTripMs) return;
      const measured = time - (askedAt + at) / 2;
      const shown = offset === null ? measured : shownAt(at);
      offset = { measured, at, shown: Math.abs(measured - shown) > maxSlewMs ? measured : shown };
    },
  };
}
