import { type AgentMessage, limits } from '@muster/protocol/wire';
import type { Clock } from '../host/clock.ts';
import type { SampleBuffer } from '../metrics/sample-buffer.ts';

type MetricsMessage = Extract<AgentMessage, { type: 'metrics' }>;

/** Half of the window, so that results still go beside it. */
const frameBytes = limits.unacknowledgedBytes / 2;
/** Around the samples. */
const frame: MetricsMessage = { type: 'metrics', samples: [] };
const frameExtra = JSON.stringify(frame).length;
/** Where reports fill the window it is tried again after this. Milliseconds. */
const retryMs = 1_000;
/** A frame has been read by then, whatever is done with it: it no longer keeps reports from being sent. */
const readMs = 10_000;
/**
 * What was not answered is sent again after this: before version 3 nothing is said of samples that could not be stored.
 * Longer than a store may take that is only slow: a second message before the answer to the first is a violation.
 */
const answerMs = 300_000;
/** Longest that a timer holds; it would fire at once. Milliseconds. */
const longestMs = 2 ** 31 - 1;
/** Each pause is longer or shorter by up to so much of itself, so that agents do not fall into step. */
const jitter = 0.1;

export interface MetricsSenderOptions {
  buffer: SampleBuffer;
  clock: Clock;
  /** In [0, 1). */
  random: () => number;
  /** How often samples are wanted. */
  intervalMs: number;
  write: (text: string) => void;
  /** Takes so many bytes of the window. @returns false when reports need it */
  reserve: (bytes: number) => boolean;
  release: (bytes: number) => void;
}

/**
 * Sends samples over one link, oldest first, one message at a time: what there is whenever the orchestrator wants some,
 * and what has gathered while there was no link in one message after the other. They stay in the buffer until it has them.
 */
export class MetricsSender {
  readonly #options: MetricsSenderOptions;
  #isWanted = false;
  /** What was sent and not answered: the number after its last sample. */
  #unanswered: number | null = null;
  #reserved = 0;
  /** Samples before this one are sent without a pause. */
  #catchUpTo = 0;
  #callOffNext = () => {};
  #callOffRead = () => {};

  constructor(options: MetricsSenderOptions) {
    this.#options = options;
  }

  /** @param isWanted the agent is approved: nobody takes samples of another */
  want(isWanted: boolean): void {
    if (isWanted === this.#isWanted) return;
    this.#isWanted = isWanted;
    if (isWanted) {
      const { random, intervalMs } = this.#options;
      // Anywhere within the interval: after a restart of the orchestrator all agents come back at once.
      this.#next(random() * intervalMs);
      return;
    }
    this.#callOffNext();
    this.#unanswered = null;
    this.#release();
  }

  /** The orchestrator has those up to this time, or will never want them. */
  stored(collectedAt: number): void {
    const { buffer } = this.#options;
    if (this.#unanswered === null || !this.#isWanted) return;
    let done = buffer.first;
    while (done < this.#unanswered && done < buffer.end && buffer.timeOf(done) <= collectedAt) done++;
    // An answer to something else: that to what was sent may still come.
    if (done === buffer.first && done < this.#unanswered) return;
    this.#unanswered = null;
    buffer.drop(done);
    this.#release();
    if (buffer.first < this.#catchUpTo) this.#send();
    else this.#nextInterval();
  }

  /** The orchestrator could not keep them: again after this, or up to twice as long, since it said so to many at once. */
  refused(afterMs: number): void {
    if (this.#unanswered === null || !this.#isWanted) return;
    this.#unanswered = null;
    this.#release();
    this.#next(afterMs * (1 + this.#options.random()));
  }

  /** The link is over. */
  end(): void {
    this.#isWanted = false;
    this.#callOffNext();
    this.#callOffRead();
  }

  #next(ms: number): void {
    this.#callOffNext();
    this.#callOffNext = this.#options.clock.after(Math.min(ms, longestMs), () => {
      this.#unanswered = null;
      this.#catchUpTo = this.#options.buffer.end;
      this.#send();
    });
  }

  #nextInterval(): void {
    const { random, intervalMs } = this.#options;
    this.#next(intervalMs * (1 - jitter + 2 * jitter * random()));
  }

  #send(): void {
    const { buffer, reserve, write } = this.#options;
    const from = buffer.first;
    const samples: string[] = [];
    let bytes = frameExtra;
    while (from + samples.length < buffer.end && samples.length < limits.samplesOfMessage) {
      // Digits and names: each character is a byte.
      const text = JSON.stringify(buffer.at(from + samples.length));
      if (bytes + text.length + 1 > frameBytes) break;
      bytes += text.length + 1;
      samples.push(text);
    }
    this.#release();
    if (samples.length === 0) {
      this.#nextInterval();
      return;
    }
    if (!reserve(bytes)) {
      this.#next(retryMs);
      return;
    }
    this.#reserved = bytes;
    this.#callOffRead = this.#options.clock.after(readMs, () => this.#release());
    this.#unanswered = from + samples.length;
    this.#next(answerMs);
    write(`{"type":"metrics","samples":[${samples.join()}]}`);
  }

  #release(): void {
    this.#callOffRead();
    const bytes = this.#reserved;
    this.#reserved = 0;
    if (bytes > 0) this.#options.release(bytes);
  }
}
