/**
 * Time in which this process was there to read what its peers sent. A deadline for a peer goes by it: while the process
 * was stopped, or one turn of its loop took long, what the peer sent in time lay unread in the kernel.
 */
export class AttendedClock {
  private readonly clock: { monotonic(): number };
  private readonly mostMs: number;
  private attendedMs = 0;
  private tickedAt: number;

  /** @param mostMs what counts at most between two ticks: a little more than the interval at which the owner ticks */
  constructor(clock: { monotonic(): number }, mostMs: number) {
    this.clock = clock;
    this.mostMs = mostMs;
    this.tickedAt = clock.monotonic();
  }

  /** Milliseconds from some fixed point; never goes back. */
  monotonic(): number {
    return this.attendedMs + Math.min(this.mostMs, this.clock.monotonic() - this.tickedAt);
  }

  /** Called by the owner's timer. Other timers and sockets have had a turn since the last call. */
  tick(): void {
    this.attendedMs = this.monotonic();
    this.tickedAt = this.clock.monotonic();
  }
}
