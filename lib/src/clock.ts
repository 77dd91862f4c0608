/** Time, passed in so that tests control it. */
export interface Clock {
  /** Wall clock: milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since a fixed point; never goes back. */
  monotonic(): number;
  /**
   * Calls `action` once after `ms` milliseconds; does not keep the process alive.
   * @returns a function that cancels the call
   */
  after(ms: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
