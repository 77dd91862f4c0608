/** A rate limit with a burst that delays instead of refusing. */
export class FrameAllowance {
  private readonly burstMs: number;
  private readonly msEach: number;
  /** When the spent costs are paid off at the rate. */
  private spentUntil = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, burst: number) {
    this.msEach = 1000 / perSecond;
    this.burstMs = burst * this.msEach;
  }

  /** @param now monotonic milliseconds, as in `wait` */
  spend(now: number, cost: number): void {
    this.spentUntil = Math.max(this.spentUntil, now) + cost * this.msEach;
  }

  /** Milliseconds until the spent costs fit into the burst again. */
  wait(now: number): number {
    return Math.max(0, this.spentUntil - this.burstMs - now);
  }
}
