/** Time as the parts of the orchestrator take it: handed in, so that tests decide what it is. */
export interface Clock {
  /** Milliseconds since the Unix epoch, by the wall clock. */
  now(): number;
  /** Milliseconds from some fixed point; never goes back. */
  monotonic(): number;
  /**
   * Calls `action` once after `ms` milliseconds; does not keep the process alive.
   * @returns a function that calls it off
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
