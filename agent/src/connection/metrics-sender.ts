import { type AgentMessage, limits } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import type { SampleBuffer } from '../metrics/sample-buffer.ts';

type MetricsMessage = Extract<AgentMessage, { type: 'metrics' }>;

/** Half of the flow-control window. The other half stays available for results. */
const frameBytes = limits.unacknowledgedBytes / 2;
/** An empty frame, used to measure its size. */
const frame: MetricsMessage = { type: 'metrics', samples: [] };
const frameExtra = JSON.stringify(frame).length;
/** Milliseconds between attempts while reports fill the flow-control window. */
const retryMs = 1_000;
/** Milliseconds after which a frame is assumed to have been read, so that it no longer delays reports. */
const readMs = 10_000;
/**
 * Milliseconds after which unacknowledged samples are resent, because orchestrators before protocol version 3 do not
 * report samples that they could not store. A store may be slow, and sending a second message before the reply would be
 * a violation.
 */
const answerMs = 300_000;
/** Maximum delay of a Node.js timer. A timer with a longer delay would fire immediately. */
const maxTimerMs = 2 ** 31 - 1;
/** Maximum random change to each delay, as a fraction, so that agents do not synchronize. */
const jitter = 0.1;

export interface MetricsSenderOptions {
  buffer: SampleBuffer;
  clock: Clock;
  random: () => number;
  intervalMs: number;
  write: (text: string) => void;
  /**
   * Reserves bytes in the window.
   * @returns false if reports need them
   */
  reserve: (bytes: number) => boolean;
  release: (bytes: number) => void;
}

/**
 * Sends samples over one link, oldest first, one message at a time: new samples at the requested interval, and samples
 * from before the link without delay. A sample stays in the buffer until the orchestrator has stored it.
 */
export class MetricsSender {
  readonly #options: MetricsSenderOptions;
  #isEnabled = false;
  /** Index after the last sample in the unacknowledged message; null if there is none. */
  #unanswered: number | null = null;
  #reserved = 0;
  /** Samples before this index are sent without delay. */
  #catchUpTo = 0;
  #cancelNext = () => {};
  #cancelRead = () => {};

  constructor(options: MetricsSenderOptions) {
    this.#options = options;
  }

  /**
   * Starts or stops sending.
   * @param isEnabled whether the agent is approved; the orchestrator expects no samples from unapproved agents
   */
  setEnabled(isEnabled: boolean): void {
    if (isEnabled === this.#isEnabled) return;
    this.#isEnabled = isEnabled;
    if (isEnabled) {
      const { random, intervalMs } = this.#options;
      // Starts at a random time within the interval, because all agents reconnect at the same time after the orchestrator
      // restarts.
      this.#next(random() * intervalMs);
      return;
    }
    this.#cancelNext();
    this.#unanswered = null;
    this.#release();
  }

  /**
   * Handles an acknowledgment. The orchestrator has stored the samples up to the given time, or will never store them.
   */
  stored(collectedAt: number): void {
    const { buffer } = this.#options;
    if (this.#unanswered === null || !this.#isEnabled) return;
    let done = buffer.first;
    while (done < this.#unanswered && done < buffer.end && buffer.timeOf(done) <= collectedAt) done++;
    // The reply belongs to an earlier message. The reply to the last message may still arrive.
    if (done === buffer.first && done < this.#unanswered) return;
    this.#unanswered = null;
    buffer.drop(done);
    this.#release();
    if (buffer.first < this.#catchUpTo) this.#send();
    else this.#nextInterval();
  }

  /**
   * Handles a refusal. Retries after one to two times this delay, because many agents receive the refusal at the same
   * time.
   */
  refused(afterMs: number): void {
    if (this.#unanswered === null || !this.#isEnabled) return;
    this.#unanswered = null;
    this.#release();
    this.#next(afterMs * (1 + this.#options.random()));
  }

  /** Stops sending. Call this when the link has closed. */
  end(): void {
    this.#isEnabled = false;
    this.#cancelNext();
    this.#cancelRead();
  }

  #next(ms: number): void {
    this.#cancelNext();
    this.#cancelNext = this.#options.clock.after(Math.min(ms, maxTimerMs), () => {
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
      // The text is ASCII, so each character is a byte.
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
    this.#cancelRead = this.#options.clock.after(readMs, () => this.#release());
    this.#unanswered = from + samples.length;
    this.#next(answerMs);
    write(`{"type":"metrics","samples":[${samples.join()}]}`);
  }

  #release(): void {
    this.#cancelRead();
    const bytes = this.#reserved;
    this.#reserved = 0;
    if (bytes > 0) this.#options.release(bytes);
  }
}
