import type { Clock } from '../../../lib/src/clock.ts';

/** A timer that all sleepers share. Wakes each sleeper once, at the time that it last requested. */
export class Alarm<Sleeper extends { wake(): void }> {
  readonly #clock: Clock;
  readonly #times = new Map<Sleeper, number>();
  #next = Number.POSITIVE_INFINITY;
  #cancelTimer: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Requests a wake-up, replacing the sleeper's earlier request.
   * @param time when to wake the sleeper, on the monotonic clock; null to cancel the request
   */
  set(sleeper: Sleeper, time: number | null): void {
    if (time === null) {
      this.#times.delete(sleeper);
      return;
    }
    this.#times.set(sleeper, time);
    if (time < this.#next) this.#arm(time);
  }

  #arm(time: number): void {
    this.#cancelTimer();
    this.#next = time;
    // Rounds up, because a timer that fires too early would wake no sleeper.
    this.#cancelTimer = this.#clock.after(Math.max(1, Math.ceil(time - this.#clock.monotonic())), () => this.#ring());
  }

  #ring(): void {
    this.#next = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonic();
    for (const [sleeper, time] of [...this.#times])
      if (time <= now) {
        this.#times.delete(sleeper);
        sleeper.wake();
      }
    const earliest = Math.min(...this.#times.values());
    if (earliest < this.#next) this.#arm(earliest);
  }
}
