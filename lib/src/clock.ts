/** A source of time that callers pass in, so that tests control the time. */
export interface Clock {
  /** Returns the wall-clock time in milliseconds since the Unix epoch. */
  now(): number;
  /** Returns milliseconds since a fixed point. Never decreases. */
  monotonic(): number;
  /**
   * Calls `action` once after `ms` milliseconds. Does not keep the process alive.
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
