import { MusterError, type Sample } from '@muster/protocol';
import type { SampleStats } from './samples.ts';

/** Samples that go into one commit: whose each is, and what. */
export interface SampleBatch {
  readonly nodes: string[];
  readonly samples: Sample[];
}

interface Waiting {
  readonly nodeId: string;
  readonly samples: readonly Sample[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * How long the first sample waits for others, in ms. They have been up to a minute on their way by then, and what many
 * agents send one by one would else be as many commits, with all that goes with each.
 */
const usualGatherMs = 200;
/** So many are worth a commit, and wait for no others. */
const enough = 1_000;
const mostOfCommit = 20_000;
/** What may wait; more is turned away, and stays with the agents. */
const mostWaiting = 200_000;

/** Gathers samples into batches, one commit at a time: while one is under way the next gathers. */
export class SampleBatches {
  readonly #commit: (batch: SampleBatch) => Promise<void>;
  readonly #gatherMs: number;
  #waiting: Waiting[] = [];
  #queued = 0;
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;
  #stored = 0;
  #commits = 0;
  #failed = 0;
  #trouble: string | null = null;

  /** @param commit resolves when all of a batch is kept, rejects when none of it is */
  constructor(commit: (batch: SampleBatch) => Promise<void>, gatherMs = usualGatherMs) {
    this.#commit = commit;
    this.#gatherMs = gatherMs;
  }

  get stats(): SampleStats {
    return {
      queued: this.#queued,
      stored: this.#stored,
      commits: this.#commits,
      failed: this.#failed,
      trouble: this.#trouble,
    };
  }

  add(nodeId: string, samples: readonly Sample[]): Promise<void> {
    if (this.#closed) return Promise.reject(new MusterError('draining', 'The store of samples is being closed'));
    if (samples.length === 0) return Promise.resolve();
    if (this.#queued > 0 && this.#queued + samples.length > mostWaiting)
      return Promise.reject(
        new MusterError('storage_unavailable', `${this.#queued} samples wait for the disk already`),
      );
    this.#queued += samples.length;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ nodeId, samples, resolve, reject });
      if (this.#running !== null) return;
      if (this.#queued >= enough) this.#start();
      else this.#timer ??= setTimeout(() => this.#start(), this.#gatherMs);
    });
  }

  #start(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#running !== null || this.#waiting.length === 0) return;
    this.#running = this.#run().finally(() => {
      this.#running = null;
      // What came between the last look and now.
      if (this.#waiting.length > 0) this.#start();
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const taken = this.#take();
      const batch: SampleBatch = { nodes: [], samples: [] };
      for (const { nodeId, samples } of taken)
        for (const sample of samples) {
          batch.nodes.push(nodeId);
          batch.samples.push(sample);
        }
      const count = batch.samples.length;
      try {
        await this.#commit(batch);
        this.#stored += count;
        this.#commits++;
        this.#trouble = null;
        for (const { resolve } of taken) resolve();
      } catch (error) {
        this.#failed += count;
        this.#trouble = (error as Error).message;
        for (const { reject } of taken) reject(error);
      }
      this.#queued -= count;
    }
  }

  #take(): Waiting[] {
    let count = 0;
    let end = 0;
    while (end < this.#waiting.length && count < mostOfCommit) count += this.#waiting[end++]!.samples.length;
    const taken = this.#waiting.slice(0, end);
    this.#waiting = this.#waiting.slice(end);
    return taken;
  }

  /** Takes nothing more; resolves when all that was taken is committed or refused. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#start();
    while (this.#running !== null) await this.#running;
  }
}
