/** A rate limit with a burst that delays instead of refusing. */
export class FrameAllowance {
  private readonly burstMs: number;
  private readonly msEach: number;
  /** Time at which the allowance is completely refilled. */
  private spentUntil = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, burst: number) {
    this.msEach = 1000 / perSecond;
    this.burstMs = burst * this.msEach;
  }

  /** @param now monotonic milliseconds, as in `wait` */
  spend(now: number, cost: number): void {
    this.spentUntil = Math.max(this.spentUntil, now) + cost * this.msEach;
  }

  /** @returns milliseconds until costs are within the burst again; 0: now */
  wait(now: number): number {
    return Math.max(0, this.spentUntil - this.burstMs - now);
  }
}
