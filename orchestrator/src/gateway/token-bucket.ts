/** A rate with a burst. Its numbers are handed in at each take, so that ten thousand buckets share them. */
export class TokenBucket {
  private tokens: number;
  private refilledAt: number;

  /** @param now monotonic milliseconds, as in `take` */
  constructor(burst: number, now: number) {
    this.tokens = burst;
    this.refilledAt = now;
  }

  /** @returns false when the rate is exceeded */
  take(now: number, perSecond: number, burst: number): boolean {
    this.tokens = Math.min(burst, this.tokens + (Math.max(0, now - this.refilledAt) * perSecond) / 1000);
    this.refilledAt = now;
    if (this.tokens < 1) return false;
    this.tokens -= 1;
    return true;
  }

  /**
   * Takes one in any case, on credit where none is left.
   * @returns milliseconds until what was taken on credit is there; 0 when nothing is owed
   */
  owe(now: number, perSecond: number, burst: number): number {
    if (this.take(now, perSecond, burst)) return 0;
    this.tokens -= 1;
    return Math.max(0, (-this.tokens * 1000) / perSecond);
  }

  /** Takes back what `take` counted. */
  giveBack(): void {
    this.tokens += 1;
  }
}
