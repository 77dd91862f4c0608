import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/**
 * Minimum processor share, for two reasons: processes outside a container may be counted although they do not compete,
 * and a hanging wait must time out within the test's time limit.
 */
const minShare = 0.1;

/**
 * Returns the processor share that each process receives.
 * @param runnable number of processes and threads that run or wait for a processor
 */
export const fairShare = (runnable: number, processors: number): number =>
  Math.max(minShare, Math.min(1, processors / Math.max(1, runnable)));

/** Returns the number of processes and threads on this machine that run or wait for a processor; 1 except on Linux. */
function runnableNow(): number {
  try {
    // The fourth field is `runnable/all`; see proc_loadavg(5).
    return Number(/ (\d+)\/\d+ /.exec(readFileSync('/proc/loadavg', 'utf8'))?.[1] ?? 1);
  } catch {
    return 1;
  }
}

/**
 * A clock that slows down while processes compete for the processors. A time limit on this clock expires only if it
 * would also expire on an idle machine, except when the slowdown has reached its bound, {@link minShare}.
 */
export class FairTime {
  #elapsedMs = 0;
  #lookedAt: number;
  readonly #now: () => number;
  readonly #runnable: () => number;

  /** @param now returns milliseconds from a monotonic clock */
  constructor(now = () => performance.now(), runnable = runnableNow) {
    this.#now = now;
    this.#runnable = runnable;
    this.#lookedAt = now();
  }

  /**
   * Adds the time since the last call, weighted by the current load.
   * @returns milliseconds since the start
   */
  elapsedMs(): number {
    const now = this.#now();
    this.#elapsedMs += (now - this.#lookedAt) * fairShare(this.#runnable(), availableParallelism());
    this.#lookedAt = now;
    return this.#elapsedMs;
  }
}

/** Interval in milliseconds at which a timer reads the load. */
const lookMs = 500;

/**
 * Calls `act` after `ms` milliseconds of fair time.
 * @returns a function that cancels the call
 */
export function afterFairTime(ms: number, act: () => void): () => void {
  const time = new FairTime();
  const timer = setInterval(
    () => {
      if (time.elapsedMs() < ms) return;
      clearInterval(timer);
      act();
    },
    Math.min(ms, lookMs),
  );
  return () => clearInterval(timer);
}
