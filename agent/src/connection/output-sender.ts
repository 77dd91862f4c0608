import { limits, type OutputProgress } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { OutputTail } from '../converge/report/live-output.ts';

/** So long a burst is collected before the first of it is sent. Milliseconds. */
const collectMs = 200;

/** Sends what programs print as they print it: once a second at most, never ahead of the answer, never before results. */
export class OutputSender {
  private readonly options: OutputSenderOptions;
  private waiting: (() => void) | null = null;
  /** What was sent and not answered. */
  private unanswered: number | null = null;
  private sentAt = Number.NEGATIVE_INFINITY;
  private ended = false;

  constructor(options: OutputSenderOptions) {
    this.options = options;
  }

  /** There is something to take. */
  printed(): void {
    if (this.waiting !== null || this.unanswered !== null || this.ended) return;
    const { clock } = this.options;
    const pause = this.sentAt + limits.outputProgressIntervalMs - clock.monotonic();
    this.waiting = clock.after(Math.max(collectMs, pause), () => this.send());
  }

  /** The orchestrator has taken the last one. */
  taken(): void {
    if (this.unanswered === null) return;
    this.options.release(this.unanswered);
    this.unanswered = null;
    this.printed();
  }

  end(): void {
    this.ended = true;
    this.waiting?.();
    this.waiting = null;
  }

  private send(): void {
    const { clock, output, reserve, write } = this.options;
    this.waiting = null;
    // Room for the largest: what is taken cannot be put back.
    if (!reserve(limits.outputProgressBytes)) {
      this.sentAt = clock.monotonic();
      this.printed();
      return;
    }
    const progress = output.take();
    if (progress === null) {
      this.options.release(limits.outputProgressBytes);
      return;
    }
    this.sentAt = clock.monotonic();
    this.unanswered = limits.outputProgressBytes;
    write(progress);
  }
}

interface OutputSenderOptions {
  output: OutputTail;
  clock: Clock;
  write: (progress: OutputProgress) => void;
  /** Takes so many bytes of the window. @returns false when reports need it */
  reserve: (bytes: number) => boolean;
  release: (bytes: number) => void;
}
