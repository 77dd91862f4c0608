import { MusterError, type Sample } from '@muster/protocol';
import type { SampleStats } from './samples.ts';

/** The samples in one commit, and their agents at the same indices. */
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
 * Milliseconds for which the first sample in a batch waits for more samples. Agents send their samples separately, each
 * commit has a fixed cost, and agents already delay samples by up to a minute.
 */
const defaultGatherMs = 200;
/** Number of samples above which a batch is committed without waiting. */
const fullBatch = 1_000;
const maxBatch = 20_000;
/** Maximum number of queued samples. Further samples are refused, and agents retain refused samples. */
const maxQueued = 200_000;

/**
 * Collects samples into batches, and commits one batch at a time. Samples that arrive during a commit form the next
 * batch.
 */
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

  /** @param commit stores the whole batch, or rejects */
  constructor(commit: (batch: SampleBatch) => Promise<void>, gatherMs = defaultGatherMs) {
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
    if (this.#closed) return Promise.reject(new MusterError('draining', 'The sample store is being closed'));
    if (samples.length === 0) return Promise.resolve();
    if (this.#queued > 0 && this.#queued + samples.length > maxQueued)
      return Promise.reject(new MusterError('storage_unavailable', `${this.#queued} samples are already queued`));
    this.#queued += samples.length;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ nodeId, samples, resolve, reject });
      if (this.#running !== null) return;
      if (this.#queued >= fullBatch) this.#start();
      else this.#timer ??= setTimeout(() => this.#start(), this.#gatherMs);
    });
  }

  #start(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#running !== null || this.#waiting.length === 0) return;
    this.#running = this.#run().finally(() => {
      this.#running = null;
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
    while (end < this.#waiting.length && count < maxBatch) count += this.#waiting[end++]!.samples.length;
    const taken = this.#waiting.slice(0, end);
    this.#waiting = this.#waiting.slice(end);
    return taken;
  }

  /** Refuses new samples. Resolves when all accepted samples are committed or refused. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#start();
    while (this.#running !== null) await this.#running;
  }
}
