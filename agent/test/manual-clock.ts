import type { Clock } from '../src/host/clock.ts';

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  private time = 1_800_000_000_000;
  private wallAhead = 0;
  private readonly timers = new Set<{ at: number; action: () => void }>();

  now(): number {
    return this.time + this.wallAhead;
  }

  monotonic(): number {
    return this.time;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.time + ms, action };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  /** Somebody sets the wall clock, by so many milliseconds. */
  setWall(byMs: number): void {
    this.wallAhead += byMs;
  }

  /** How long until something falls due, null when nothing waits. */
  get next(): number | null {
    const times = [...this.timers].map((timer) => timer.at - this.time);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Moves on, calling what falls due on the way in its order. */
  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const due = [...this.timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.timers.delete(due);
      this.time = Math.max(this.time, due.at);
      due.action();
    }
    this.time = end;
  }
}
