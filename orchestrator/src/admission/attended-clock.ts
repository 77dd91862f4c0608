/**
 * A monotonic clock that advances only while the process can read its sockets. Used for peers' deadlines, because data
 * that a peer sent in time may wait in the kernel while the process is stopped or blocked.
 */
export class AttendedClock {
  private readonly clock: { monotonic(): number };
  private readonly maxTickMs: number;
  private attendedMs = 0;
  private tickedAt: number;

  /** @param maxTickMs maximum time counted between two ticks; slightly more than the tick interval */
  constructor(clock: { monotonic(): number }, maxTickMs: number) {
    this.clock = clock;
    this.maxTickMs = maxTickMs;
    this.tickedAt = clock.monotonic();
  }

  /** Returns milliseconds since an arbitrary time. The value never decreases. */
  monotonic(): number {
    return this.attendedMs + Math.min(this.maxTickMs, this.clock.monotonic() - this.tickedAt);
  }

  /** Counts the time since the last tick. Call this from a timer, so that the process reads sockets between ticks. */
  tick(): void {
    this.attendedMs = this.monotonic();
    this.tickedAt = this.clock.monotonic();
  }
}
