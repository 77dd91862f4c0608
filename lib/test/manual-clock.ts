import type { Clock } from '../src/clock.ts';

/** A clock that advances only when a test advances it. */
export class ManualClock implements Clock {
  #time = 1_800_000_000_000;
  /** Difference between the wall clock and the monotonic clock, in milliseconds. */
  #wallOffset = 0;
  readonly #timers = new Set<{ at: number; action: () => void }>();

  now(): number {
    return this.#time + this.#wallOffset;
  }

  monotonic(): number {
    return this.#time;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.#time + ms, action };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Sets the wall clock forward, or back if `ms` is negative. Timers are not affected. */
  jump(ms: number): void {
    this.#wallOffset += ms;
  }

  /** Simulates a suspended process: each timer that becomes due in this time fires once, when the process resumes. */
  stall(ms: number): void {
    this.#time += ms;
    this.advance(0);
  }

  /** Milliseconds until the next timer is due; null if there is no timer. */
  get next(): number | null {
    const earliest = this.#earliest();
    return earliest === null ? null : earliest.at - this.#time;
  }

  /** Advances the time, and fires the timers that become due, in order. */
  advance(ms: number): void {
    const end = this.#time + ms;
    for (;;) {
      const timer = this.#earliest();
      if (timer === null || timer.at > end) break;
      this.#timers.delete(timer);
      this.#time = Math.max(this.#time, timer.at);
      timer.action();
    }
    this.#time = end;
  }

  #earliest(): { at: number; action: () => void } | null {
    let earliest: { at: number; action: () => void } | null = null;
    for (const timer of this.#timers) if (earliest === null || timer.at < earliest.at) earliest = timer;
    return earliest;
  }
}
