import type { Sample } from '@muster/protocol';
import type { ForwardedSample } from '../domain/fleet/sample-forwarding.ts';

/** Maximum number of agents whose newest sample time is retained. */
const maxAgents = 100_000;
/** Number of samples removed from the queue after which the array is compacted. */
const compactAt = 10_000;

/** Queue of samples for remote write. Each agent's samples are in chronological order. */
export class RemoteWriteQueue {
  readonly #capacity: number;
  /** Time of the newest queued sample, by agent. */
  readonly #newest = new Map<string, number>();
  #samples: ForwardedSample[] = [];
  /** Number of samples at the front that have been taken or dropped. */
  #head = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#samples.length - this.#head;
  }

  /**
   * Adds samples that are newer than the agent's last queued sample.
   * @param latest maximum time of samples to add, in Unix seconds
   * @returns the number of skipped samples, and the number of oldest samples dropped because the queue was full
   */
  add(nodeId: string, samples: readonly Sample[], latest: number): { skipped: number; dropped: number } {
    let last = this.#newest.get(nodeId) ?? Number.NEGATIVE_INFINITY;
    let skipped = 0;
    for (const sample of samples.toSorted((one, other) => one.collected_at - other.collected_at)) {
      if (sample.collected_at <= last || sample.collected_at > latest) {
        skipped++;
        continue;
      }
      last = sample.collected_at;
      this.#samples.push({ nodeId, sample });
    }
    // Moves the agent to the end of the map, because the first entry is evicted first.
    this.#newest.delete(nodeId);
    this.#newest.set(nodeId, last);
    if (this.#newest.size > maxAgents) this.#newest.delete(this.#newest.keys().next().value as string);
    // Drops the oldest samples, because remote servers may refuse old samples.
    const dropped = Math.max(0, this.length - this.#capacity);
    this.#head += dropped;
    if (this.#head > this.#capacity) this.#compact();
    return { skipped, dropped };
  }

  take(count: number): ForwardedSample[] {
    const batch = this.#samples.slice(this.#head, this.#head + count);
    this.#head += batch.length;
    if (this.#head > compactAt || this.#head === this.#samples.length) this.#compact();
    return batch;
  }

  #compact(): void {
    this.#samples = this.#samples.slice(this.#head);
    this.#head = 0;
  }
}
