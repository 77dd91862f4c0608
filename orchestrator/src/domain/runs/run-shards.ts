import { hash } from 'node:crypto';
import { type Context, seconds } from '../shared/context.ts';
import { type Fence, fencedBy, type Leases } from '../shared/leases.ts';

/** Divides the runs among the processes. The process that holds a shard conducts the runs in it. */

const count = 16;
const names = Array.from({ length: count }, (_, index) => `runs/${index}`);

/** Returns the name of the lease that conducting the run requires. */
export const shardOf = (runId: string): string =>
  names[Number.parseInt(hash('sha256', runId).slice(0, 8), 16) % count] as string;

/** A shard that this process has held without interruption. */
export interface HeldShard {
  /** Transactions of this context require the shard's lease. */
  readonly context: Context;
  /** When this process took over the shard, in Unix seconds. */
  readonly since: number;
}

/** Default of `transferMs`. */
const defaultTransferMs = 5_000;

export class RunShards {
  readonly #context: Context;
  readonly #leases: Leases;
  readonly #transferMs: number;
  readonly #held = new Map<string, HeldShard & { readonly fence: Fence }>();

  /** @param transferMs milliseconds for which {@link handOver} and {@link release} wait for the database */
  constructor(context: Context, leases: Leases, transferMs = defaultTransferMs) {
    this.#context = context;
    this.#leases = leases;
    this.#transferMs = transferMs;
    leases.want(names);
  }

  /**
   * Returns the run's shard; null if another process conducts the run. Returns the same object until another process
   * may have held the shard.
   */
  hold(runId: string): Promise<HeldShard | null> {
    return this.#hold(shardOf(runId));
  }

  /** Reports whether this process should conduct the run. */
  isPreferred(runId: string): boolean {
    return this.#leases.placement.isPreferred(shardOf(runId));
  }

  /** Lets another process begin a new run, if that process should conduct the run. */
  announce(runId: string): void {
    if (!this.isPreferred(runId)) this.#context.bus.publish({ type: 'run_changed', run_id: runId });
  }

  /** Acquires the shards that this process should hold, and releases the other shards. */
  async settle(): Promise<void> {
    const { placement } = this.#leases;
    const preferred = names.filter((name) => placement.isPreferred(name));
    this.#leases.want(preferred);
    // Concurrent calls share one check and one transaction.
    await Promise.all(preferred.map((name) => this.#hold(name)));
    const misplaced = names.filter((name) => !placement.isPreferred(name));
    for (const name of misplaced) this.#held.delete(name);
    await this.#leases.release(misplaced);
  }

  /**
   * Transfers the shards before this process stops. Never rejects: other processes also take over the shards of a
   * closed process.
   */
  async handOver(): Promise<void> {
    await this.#transfer(this.settle(), 'failed to transfer runs to other processes');
  }

  /**
   * Releases all shards. Never rejects: if the database is unavailable, the leases end with this process, and stopping
   * must succeed.
   */
  async release(): Promise<void> {
    this.#held.clear();
    await this.#transfer(this.#leases.release(names), 'failed to release run shards');
  }

  async #transfer(transfer: Promise<void>, failure: string): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      const late = new Error(`the database has not answered for ${this.#transferMs} ms`);
      timer = setTimeout(() => reject(late), this.#transferMs);
    });
    try {
      await Promise.race([transfer, timeout]);
    } catch (error) {
      this.#context.log.warn({ err: error }, failure);
    } finally {
      clearTimeout(timer);
    }
  }

  async #hold(name: string): Promise<HeldShard | null> {
    const fence = await this.#leases.hold(name);
    const known = this.#held.get(name);
    if (fence !== null && known?.fence === fence) return known;
    this.#held.delete(name);
    if (fence === null) return null;
    const held = { fence, context: fencedBy(this.#context, fence), since: seconds(this.#context.now()) };
    this.#held.set(name, held);
    return held;
  }
}
