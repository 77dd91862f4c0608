import { stat } from 'node:fs/promises';
import { MusterError, type Sample } from '@muster/protocol';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { Log } from '../../../../lib/src/log.ts';
import type { SampleStats, SampleStore } from './samples.ts';

/**
 * A sample store that survives file failures, because no other part of the orchestrator depends on it. While the file
 * cannot be opened or its writer has failed, the store refuses samples, and the agents retain them. The file is
 * reopened as soon as possible, or created again if an operator has moved it.
 */
export interface SampleFileOptions {
  readonly file: string;
  /** @param lost called if the opened store fails later */
  readonly open: (lost: (reason: Error) => void) => Promise<SampleStore>;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Pick<Log, 'info' | 'error'>;
}

/** Interval in milliseconds between checks of the file. */
const checkMs = 2_000;

const none: SampleStats = { queued: 0, stored: 0, commits: 0, failed: 0, trouble: null };

/** @returns the device and inode numbers of the file; null if it does not exist; undefined if they cannot be read */
async function identityOf(file: string): Promise<string | null | undefined> {
  try {
    const { dev, ino } = await stat(file, { bigint: true });
    return `${dev} ${ino}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : undefined;
  }
}

/** Resolves once the file is open or the first attempt has failed. Further attempts run in the background. */
export async function openSampleFile(options: SampleFileOptions): Promise<SampleStore> {
  const file = new SampleFile(options);
  await file.look();
  return file;
}

class SampleFile implements SampleStore {
  readonly #options: SampleFileOptions;
  #store: SampleStore | null = null;
  #identity: string | null | undefined = null;
  /** The reason why the store is not open; null if it is open. */
  #trouble: string | null = null;
  /** Combined statistics of closed stores. */
  #before = none;
  #refused = 0;
  #closing = false;
  #looking: Promise<void> = Promise.resolve();
  #cancelTimer = () => {};

  constructor(options: SampleFileOptions) {
    this.#options = options;
  }

  look(): Promise<void> {
    this.#looking = this.#look().finally(() => {
      if (!this.#closing) this.#cancelTimer = this.#options.clock.after(checkMs, () => void this.look());
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const { file } = this.#options;
    if (this.#store !== null) {
      const found = await identityOf(file);
      if (found === undefined || found === this.#identity || this.#closing) return;
      await this.#lose(this.#store, `${file} was removed or replaced while it was in use`);
    }
    if (!this.#closing) await this.#open();
  }

  async #open(): Promise<void> {
    const { file, open, log } = this.#options;
    let lost = (_: Error): void => {};
    try {
      const store = await open((reason) => lost(reason));
      lost = ({ message }) => void this.#lose(store, message);
      this.#store = store;
      this.#identity = await identityOf(file);
    } catch (error) {
      this.#complain((error as Error).message);
      return;
    }
    if (this.#trouble !== null) log.info({ file }, 'sample store recovered');
    this.#trouble = null;
  }

  /** Closes a failed store after its pending requests have completed. */
  async #lose(store: SampleStore, reason: string): Promise<void> {
    if (this.#store !== store || this.#closing) return;
    this.#store = null;
    this.#complain(reason);
    await store.close().catch((error: Error) => this.#complain(error.message));
    const { stored, commits, failed } = store.stats();
    const { stored: s, commits: c, failed: f } = this.#before;
    this.#before = { ...none, stored: s + stored, commits: c + commits, failed: f + failed };
  }

  /** Logs a reason unless it is the same as the last logged reason. */
  #complain(reason: string): void {
    if (reason === this.#trouble) return;
    this.#trouble = reason;
    this.#options.log.error(
      { file: this.#options.file, reason },
      'the sample store is unavailable; will retry. Agents keep their samples',
    );
  }

  #use(): SampleStore {
    if (this.#closing) throw new MusterError('draining', 'The sample store is being closed');
    if (this.#store === null)
      throw new MusterError('storage_unavailable', `The sample store is not open: ${this.#trouble}`);
    return this.#store;
  }

  async add(nodeId: string, samples: readonly Sample[]): Promise<void> {
    if (this.#store === null) this.#refused += samples.length;
    return this.#use().add(nodeId, samples);
  }

  async since(nodeId: string, since: number, limit: number): Promise<Sample[]> {
    return this.#use().since(nodeId, since, limit);
  }

  async averages(nodeId: string, since: number, step: number, limit: number): Promise<Sample[]> {
    return this.#use().averages(nodeId, since, step, limit);
  }

  async latest(nodeIds: readonly string[], since: number): Promise<Map<string, Sample>> {
    return this.#use().latest(nodeIds, since);
  }

  async dropBefore(time: number): Promise<number> {
    return this.#store === null ? 0 : this.#store.dropBefore(time);
  }

  stats(): SampleStats {
    const now = this.#store?.stats() ?? none;
    return {
      queued: now.queued,
      stored: this.#before.stored + now.stored,
      commits: this.#before.commits + now.commits,
      failed: this.#before.failed + this.#refused + now.failed,
      trouble: this.#trouble ?? now.trouble,
    };
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#cancelTimer();
    await this.#looking;
    await this.#store?.close();
  }
}
