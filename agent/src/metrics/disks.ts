import type { Clock } from '../../../lib/src/clock.ts';
import type { MachineSource, Room } from '../host/machine-source.ts';
import { type FileSystem, fileSystems, parseMounts } from './mounts.ts';

/** So long all disks together have to answer. Milliseconds. */
const answerMs = 2_000;
/** Questions without an answer that may be open: each holds one of the few threads that all work with files goes by. */
const mostUnanswered = 2;

export interface Disks {
  total: number;
  used: number;
}

/** The room of all that is mounted, each disk asked in turn: one that hangs holds up nothing else, and makes the sum unknown. */
export class DiskReader {
  readonly #source: MachineSource;
  readonly #clock: Clock;
  /** Places whose question was not answered. */
  readonly #unanswered = new Set<string>();
  #mountsText = '';
  #fileSystems: readonly FileSystem[] = [];

  constructor(source: MachineSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** Null when there are none, or one of them does not say. Settles within two seconds. */
  async read(): Promise<Disks | null> {
    const systems = this.#mounted();
    const rooms: (Room & { pool: string | null })[] = [];
    const deadline = this.#clock.monotonic() + answerMs;
    if (this.#unanswered.size >= mostUnanswered || systems.some(({ path }) => this.#unanswered.has(path))) return null;
    for (const { path, pool } of systems) {
      const left = deadline - this.#clock.monotonic();
      const room = left > 0 ? await this.#ask(path, left) : 'unknown';
      if (room === 'unknown') return null;
      if (room !== 'hidden') rooms.push({ ...room, pool });
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

  /** @returns `hidden`: gone meanwhile, or where this user may not look */
  #ask(path: string, limitMs: number): Promise<Room | 'hidden' | 'unknown'> {
    return new Promise((resolve) => {
      this.#unanswered.add(path);
      const callOff = this.#clock.after(limitMs, () => resolve('unknown'));
      const answered = (answer: Room | 'hidden' | 'unknown') => {
        this.#unanswered.delete(path);
        callOff();
        resolve(answer);
      };
      this.#source
        .room(path)
        .then(answered, (error: NodeJS.ErrnoException) =>
          answered(['EACCES', 'ENOENT', 'ENOTDIR'].includes(error.code ?? '') ? 'hidden' : 'unknown'),
        );
    });
  }
}

/** Of a pool the used of each file system, and what is free once. Null when there is nothing to sum. */
export function sumRooms(rooms: readonly (Room & { pool: string | null })[]): Disks | null {
  let used = 0;
  let free = 0;
  const freeOfPools = new Map<string, number>();
  for (const room of rooms) {
    used += room.total - room.free;
    if (room.pool === null) free += room.free;
    else freeOfPools.set(room.pool, Math.max(room.free, freeOfPools.get(room.pool) ?? 0));
  }
  for (const shared of freeOfPools.values()) free += shared;
  const total = used + free;
  return rooms.length > 0 && used >= 0 && total >= used && Number.isSafeInteger(total) ? { total, used } : null;
}
