import type { Clock } from '../../../lib/src/clock.ts';
import type { Capacity, MachineSource } from '../host/machine-source.ts';
import { type FileSystem, fileSystems, parseMounts } from './mounts.ts';

/** Timeout for all disks together. */
const timeoutMs = 2_000;
/** Maximum number of pending queries. Each query blocks one of the few threads for file access. */
const maxUnanswered = 2;

export interface Disks {
  total: number;
  used: number;
}

/**
 * Adds up the capacity of all mounted disks, one after another. A hanging disk makes the sum unknown but blocks nothing
 * else.
 */
export class DiskReader {
  readonly #source: MachineSource;
  readonly #clock: Clock;
  /** Mount points with a pending query. */
  readonly #unanswered = new Set<string>();
  #mountsText = '';
  #fileSystems: readonly FileSystem[] = [];

  constructor(source: MachineSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** Reads the capacity within `timeoutMs`. @returns null if there are no disks or a disk does not respond */
  async read(): Promise<Disks | null> {
    const systems = this.#mounted();
    const rooms: (Capacity & { pool: string | null })[] = [];
    const deadline = this.#clock.monotonic() + timeoutMs;
    if (this.#unanswered.size >= maxUnanswered || systems.some(({ path }) => this.#unanswered.has(path))) return null;
    for (const { path, pool } of systems) {
      const left = deadline - this.#clock.monotonic();
      const capacity = left > 0 ? await this.#query(path, left) : 'unknown';
      if (capacity === 'unknown') return null;
      if (capacity !== 'hidden') rooms.push({ ...capacity, pool });
    }
    return sumRooms(rooms);
  }

  #mounted(): readonly FileSystem[] {
    const text = this.#source.text('/proc/self/mountinfo', 'latin1') ?? '';
    if (text !== this.#mountsText) {
      this.#mountsText = text;
      this.#fileSystems = fileSystems(parseMounts(text));
    }
    return this.#fileSystems;
  }

  /**
   * Queries one disk.
   * @returns `hidden` if the disk was unmounted in the meantime or is not accessible to this user
   */
  #query(path: string, limitMs: number): Promise<Capacity | 'hidden' | 'unknown'> {
    return new Promise((resolve) => {
      this.#unanswered.add(path);
      const cancelTimeout = this.#clock.after(limitMs, () => resolve('unknown'));
      const answered = (answer: Capacity | 'hidden' | 'unknown') => {
        this.#unanswered.delete(path);
        cancelTimeout();
        resolve(answer);
      };
      this.#source
        .capacity(path)
        .then(answered, (error: NodeJS.ErrnoException) =>
          answered(['EACCES', 'ENOENT', 'ENOTDIR'].includes(error.code ?? '') ? 'hidden' : 'unknown'),
        );
    });
  }
}

/**
 * Adds up the space of file systems. Counts the free space of a pool once, and the used space of each of its file
 * systems. Returns null if there are no file systems.
 */
export function sumRooms(rooms: readonly (Capacity & { pool: string | null })[]): Disks | null {
  let used = 0;
  let free = 0;
  const freeOfPools = new Map<string, number>();
  for (const capacity of rooms) {
    used += capacity.total - capacity.free;
    if (capacity.pool === null) free += capacity.free;
    else freeOfPools.set(capacity.pool, Math.max(capacity.free, freeOfPools.get(capacity.pool) ?? 0));
  }
  for (const shared of freeOfPools.values()) free += shared;
  const total = used + free;
  return rooms.length > 0 && used >= 0 && total >= used && Number.isSafeInteger(total) ? { total, used } : null;
}
