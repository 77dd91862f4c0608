/** A rate limit with a burst. Excess cost is delayed, not refused. */
export class FrameAllowance {
  private readonly burstMs: number;
  private readonly msEach: number;
  /** Time at which the full burst is available again. */
  private usedUntil = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, burst: number) {
    this.msEach = 1000 / perSecond;
    this.burstMs = burst * this.msEach;
  }

  /** @param now monotonic time in milliseconds */
  consume(now: number, cost: number): void {
    this.usedUntil = Math.max(this.usedUntil, now) + cost * this.msEach;
  }

  /** @returns milliseconds until the costs are within the burst; 0 if no wait is necessary */
  wait(now: number): number {
    return Math.max(0, this.usedUntil - this.burstMs - now);
  }
}
