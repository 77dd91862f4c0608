import type { Clock } from '../../../lib/src/clock.ts';

/** Milliseconds between the first two notices of a series. The interval doubles with each further notice. */
const firstMs = 1_000;
/** Maximum milliseconds between two notices. A period of this length without a loss also ends a series. */
const maxMs = 16_000;

/**
 * Announces that hints were lost. Each notice makes this process read everything and its clients reload, so the first
 * notice is immediate, and further notices are combined.
 */
export class LossNotices {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  readonly #announce: () => void;
  #intervalMs = firstMs;
  /** Time from which the next notice is allowed, in monotonic milliseconds. */
  #nextAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | null = null;

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>, announce: () => void) {
    this.#clock = clock;
    this.#announce = announce;
  }

  /** Announces a loss, now or as soon as a notice is allowed. */
  lost(): void {
    if (this.#cancel !== null) return;
    const now = this.#clock.monotonic();
    if (now - this.#nextAt >= maxMs) this.#intervalMs = firstMs;
    if (now >= this.#nextAt) this.#notify();
    else this.#cancel = this.#clock.after(this.#nextAt - now, () => this.#notify());
  }

  close(): void {
    this.#cancel?.();
  }

  #notify(): void {
    this.#cancel = null;
    this.#nextAt = this.#clock.monotonic() + this.#intervalMs;
    this.#intervalMs = Math.min(maxMs, this.#intervalMs * 2);
    this.#announce();
  }
}
