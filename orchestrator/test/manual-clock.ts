import type { Clock } from '../src/clock.ts';

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  private time = 1_800_000_000_000;
  /** How far the wall clock is from where it began with the other. */
  private wallOff = 0;
  private readonly timers = new Set<{ at: number; action: () => void }>();

  now(): number {
    return this.time + this.wallOff;
  }

  monotonic(): number {
    return this.time;
  }

  after(ms: number, action: () => void): () => void {
    const timer = { at: this.time + ms, action };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  /** Sets the wall clock, and only that, forwards or back. */
  jump(ms: number): void {
    this.wallOff += ms;
  }

  /** Time passes while the process is stopped: what fell due meanwhile is called once, at the end. */
  stall(ms: number): void {
    this.time += ms;
    this.advance(0);
  }

  /** Moves on, calling what falls due on the way in its order. */
  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      let next: { at: number; action: () => void } | undefined;
      for (const timer of this.timers) if (timer.at <= end && (!next || timer.at < next.at)) next = timer;
      if (!next) break;
      this.timers.delete(next);
      this.time = Math.max(this.time, next.at);
      next.action();
    }
    this.time = end;
  }
}
