import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errnoOf, HostFailure, hostFailure } from '../failure.ts';
import { writeAll } from '../write-all.ts';
import { synced } from './atomic-write.ts';
import { checkedLine, jsonOf } from './checked-line.ts';

/** Neither follows a link nor waits for whoever holds the other end of a pipe. */
const carefully = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * A file of checked lines, 0600, in a directory that nobody else may touch. It is made by the first `replace`, added to, and
 * taken away again. Held open by nobody in between.
 */
export class LineFile {
  readonly #path: string;
  /** How long it was left. Null: it is not there, or not as it was left, and only to be replaced. */
  #size: number | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * @param mostBytes a longer one was not written here
   * @returns the values of its lines, and how many lines are damaged, which are passed over; null when there is none
   * @throws HostFailure
   */
  read(mostBytes: number): { values: unknown[]; damaged: number } | null {
    this.#size = null;
    let bytes: Buffer;
    try {
      bytes = readAll(this.#path, mostBytes);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null;
      throw hostFailure(error, `read ${this.#path}`);
    }
    const values: unknown[] = [];
    let damaged = 0;
    for (let start = 0; start < bytes.length; ) {
      const found = bytes.indexOf(0x0a, start);
      const end = found === -1 ? bytes.length : found;
      // Without its newline it is the end of one that was being written.
      const json = found === -1 ? null : jsonOf(bytes.subarray(start, end));
      if (json === null) damaged++;
      else values.push(JSON.parse(json));
      start = end + 1;
    }
    if (damaged === 0) this.#size = bytes.length;
    return { values, damaged };
  }

  /**
   * Adds lines; they are on disk when it resolves.
   * @returns false: it is not as it was left, nothing was added, and it wants to be replaced
   * @throws HostFailure; nothing was added then either
   */
  async append(values: Iterable<unknown>): Promise<boolean> {
    const size = this.#size;
    if (size === null) return false;
    this.#size = null;
    let fd: number;
    try {
      fd = openSync(this.#path, constants.O_WRONLY | constants.O_APPEND | carefully);
    } catch (error) {
      if (['ENOENT', 'ELOOP', 'ENXIO', 'EISDIR'].includes(errnoOf(error) ?? '')) return false;
      throw hostFailure(error, `write ${this.#path}`);
    }
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile() || stats.size !== size) return false;
      const lines = encode(values);
      try {
        writeAll(fd, lines);
      } catch (error) {
        ftruncateSync(fd, size);
        this.#size = size;
        throw error;
      }
      // When this fails nobody knows what is there.
      await dataSynced(fd);
      this.#size = size + lines.length;
      return true;
    } catch (error) {
      throw hostFailure(error, `write ${this.#path}`);
    } finally {
      closeSync(fd);
    }
  }

  /**
   * These lines take the place of whatever is there: old or new at any moment, and on disk when it resolves.
   * @throws HostFailure; the old ones are still there
   */
  async replace(values: Iterable<unknown>): Promise<void> {
    const temporary = `${this.#path}.tmp`;
    const lines = encode(values);
    this.#size = null;
    try {
      // What a killed agent left there.
      rmSync(temporary, { force: true });
      const fd = openSync(temporary, 'wx', 0o600);
      try {
        writeAll(fd, lines);
        await synced(fd);
      } finally {
        closeSync(fd);
      }
      renameSync(temporary, this.#path);
      await directorySynced(dirname(this.#path));
    } catch (error) {
      rmSync(temporary, { force: true });
      throw hostFailure(error, `write ${this.#path}`);
    }
    this.#size = lines.length;
  }

  /** @throws HostFailure */
  remove(): void {
    this.#size = null;
    try {
      rmSync(this.#path, { force: true });
    } catch (error) {
      throw hostFailure(error, `remove ${this.#path}`);
    }
  }
}

function readAll(path: string, mostBytes: number): Buffer {
  const fd = openSync(path, constants.O_RDONLY | carefully);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new HostFailure(`${path} is not a file`);
    if (stats.size > mostBytes) throw new HostFailure(`${path} is larger than any that this agent writes`);
    const bytes = Buffer.alloc(stats.size);
    let length = 0;
    for (let more = -1; more !== 0 && length < bytes.length; length += more)
      more = readSync(fd, bytes, length, bytes.length - length, null);
    return bytes.subarray(0, length);
  } finally {
    closeSync(fd);
  }
}

const encode = (values: Iterable<unknown>): Buffer => Buffer.concat([...values].map(checkedLine));

const dataSynced = (fd: number): Promise<void> =>
  new Promise((resolve, reject) => fdatasync(fd, (error) => (error === null ? resolve() : reject(error))));

async function directorySynced(path: string): Promise<void> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await synced(fd);
  } finally {
    closeSync(fd);
  }
}
