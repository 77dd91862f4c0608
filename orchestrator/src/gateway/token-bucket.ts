/** A token bucket. Callers pass the rate and burst, so that thousands of buckets need not store them. */
export class TokenBucket {
  private tokens: number;
  private refilledAt: number;

  /** @param now monotonic time in milliseconds */
  constructor(burst: number, now: number) {
    this.tokens = burst;
    this.refilledAt = now;
  }

  /** @returns false if the rate is exceeded */
  take(now: number, perSecond: number, burst: number): boolean {
    this.tokens = Math.min(burst, this.tokens + (Math.max(0, now - this.refilledAt) * perSecond) / 1000);
    this.refilledAt = now;
    if (this.tokens < 1) return false;
    this.tokens -= 1;
    return true;
  }

  /**
   * Takes one token. If none is left, borrows one.
   * @returns milliseconds until the borrowed tokens are refilled; 0 if none are borrowed
   */
  owe(now: number, perSecond: number, burst: number): number {
    if (this.take(now, perSecond, burst)) return 0;
    this.tokens -= 1;
    return Math.max(0, (-this.tokens * 1000) / perSecond);
  }

  /** Returns a token to the bucket. */
  giveBack(): void {
    this.tokens += 1;
  }
}
