import { type Quantiles, quantiles } from './quantiles.ts';

/**
 * Measures the delay of an event loop as a request at a random time would experience it. A probe is due every
 * millisecond, and each probe that a stall delays is counted with its own delay.
 */
export class LoopDelay {
  readonly #delays: number[] = [];
  #last = performance.now();
  readonly #timer: NodeJS.Timeout;

  constructor() {
    this.#timer = setInterval(() => this.#probe(), 1);
  }

  #probe(): void {
    const now = performance.now();
    const late = now - this.#last - 1;
    if (late <= 0) this.#delays.push(0);
    for (let wait = late; wait > 0; wait -= 1) this.#delays.push(wait);
    this.#last = now;
  }

  /** Stops the measurement. @returns quantiles of the delay in milliseconds, which include a current stall */
  stop(): Quantiles {
    clearInterval(this.#timer);
    this.#probe();
    return quantiles(this.#delays);
  }
}
