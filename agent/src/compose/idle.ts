import type { Clock } from '../../../lib/src/clock.ts';

/**
 * Milliseconds from the last report to the first collection, and from the first to the second collection. The first
 * collection releases objects. The second one also releases compiled code, which V8 discards only after several
 * collections without a call.
 */
const delaysMs = [10_000, 60_000];

/**
 * Collects garbage when the agent becomes idle. V8 does not collect while nothing is allocated, so the garbage from the
 * last apply would stay resident until the next apply, perhaps for a month. The launcher enables `--expose-gc`.
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
    this.schedule(delaysMs);
  }

  end(): void {
    this.cancelTimer();
  }

  private schedule([ms, ...later]: readonly number[]): void {
    if (ms === undefined) return;
    this.cancelTimer = this.clock.after(ms, () => {
      if (!this.isIdle()) return this.worked();
      globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
      this.schedule(later);
    });
  }
}
