import type { Clock } from '../../../../lib/src/clock.ts';

/**
 * The database server's time, which determines expiry for all processes on the database. Based on this process's
 * monotonic clock, so that changes to the local wall clock have no effect.
 */
export interface ServerClock extends Clock {
  /**
   * Records a response from the server.
   * @param time the server's time, in Unix milliseconds
   * @param askedAt monotonic time before the query
   */
  measured(time: number, askedAt: number): void;
}

/** Milliseconds of correction for each millisecond that passes, so that the time never goes backward. */
const slewRate = 0.1;
/** A larger difference, in milliseconds, is corrected immediately, because one of the clocks was wrong. */
const maxSlewMs = 60_000;
/** Maximum response time, in milliseconds. A slower response is too inaccurate. */
const maxRoundTripMs = 1_000;

/** Creates a clock that returns the local time until the server's time is first measured. */
export function createServerClock(local: Clock): ServerClock {
  /** Server time minus monotonic time: the value in use at `at`, and the measured value that it approaches. */
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
