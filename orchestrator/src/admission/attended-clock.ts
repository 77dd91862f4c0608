/**
 * A clock that counts only time in which this process was able to read its sockets. Deadlines for peers use this clock:
 * while the process is stopped or blocked, data that a peer sent in time waits unread in the kernel.
 */
export class AttendedClock {
  private readonly clock: { monotonic(): number };
  private readonly maxTickMs: number;
  private attendedMs = 0;
  private tickedAt: number;

  /** @param maxTickMs maximum time counted between two ticks: a little more than the owner's tick interval */
  constructor(clock: { monotonic(): number }, maxTickMs: number) {
    this.clock = clock;
    this.maxTickMs = maxTickMs;
    this.tickedAt = clock.monotonic();
  }

  /** Milliseconds since a fixed time; never decreases. */
  monotonic(): number {
    return this.attendedMs + Math.min(this.maxTickMs, this.clock.monotonic() - this.tickedAt);
  }

  /** Called by the owner's timer. Other timers and sockets had a turn since the last call. */
  tick(): void {
    this.attendedMs = this.monotonic();
    this.tickedAt = this.clock.monotonic();
  }
}
