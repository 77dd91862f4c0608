import { limits, type OutputProgress } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { OutputTail } from '../converge/report/live-output.ts';

/** Milliseconds for which output is collected before the first message in a burst. */
const collectMs = 200;

/** Sends live output at most once a second, one message at a time, and after pending results. */
export class OutputSender {
  private readonly options: OutputSenderOptions;
  private waiting: (() => void) | null = null;
  /** Bytes reserved for the unacknowledged message; null if there is none. */
  private unanswered: number | null = null;
  private sentAt = Number.NEGATIVE_INFINITY;
  private ended = false;

  constructor(options: OutputSenderOptions) {
    this.options = options;
  }

  /** Schedules a message for new output. */
  printed(): void {
    if (this.waiting !== null || this.unanswered !== null || this.ended) return;
    const { clock } = this.options;
    const pause = this.sentAt + limits.outputProgressIntervalMs - clock.monotonic();
    this.waiting = clock.after(Math.max(collectMs, pause), () => this.send());
  }

  /** Handles an acknowledgment: the orchestrator has received the last message. */
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
    // Reserves the maximum size, because output that was removed from the buffer cannot be added to it again.
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
  /**
   * Reserves bytes in the window.
   * @returns false if reports need them
   */
  reserve: (bytes: number) => boolean;
  release: (bytes: number) => void;
}
