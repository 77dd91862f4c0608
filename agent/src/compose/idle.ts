import type { Clock } from '../../../lib/src/clock.ts';

/** Milliseconds after the last report at which the agent counts as idle and releases memory. */
const idleMs = 10_000;

/**
 * Collects garbage once when the agent becomes idle. V8 does not collect while nothing is allocated, so the garbage
 * from the last apply would stay resident until the next apply, perhaps for a month. The launcher enables
 * `--expose-gc`.
 */
export class Idle {
  private readonly clock: Clock;
  private readonly isIdle: () => boolean;
  private cancelTimer: () => void = () => {};

  constructor(clock: Clock, isIdle: () => boolean) {
    this.clock = clock;
    this.isIdle = isIdle;
  }

  worked(): void {
    this.cancelTimer();
    this.cancelTimer = this.clock.after(idleMs, () => {
      if (!this.isIdle()) return this.worked();
      return globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    });
  }

  end(): void {
    this.cancelTimer();
  }
}
