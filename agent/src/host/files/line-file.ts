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

/** Does not follow links, and does not block on FIFOs. */
const safeFlags = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * A file of checked lines with mode 0600, in a directory that only the agent can write to. The first `replace` creates
 * it. The file is not held open between calls.
 */
export class LineFile {
  readonly #path: string;
  /** Size of the file after the last write; null if the file is missing or damaged and must be replaced. */
  #size: number | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * @param maxBytes a larger file is an error, because the agent never writes one
   * @returns the values of the valid lines, and the number of damaged lines; null if the file does not exist
   * @throws HostFailure
   */
  read(maxBytes: number): { values: unknown[]; damaged: number } | null {
    this.#size = null;
    let bytes: Buffer;
    try {
      bytes = readAll(this.#path, maxBytes);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return null;
      throw hostFailure(error, `read ${this.#path}`);
    }
    const values: unknown[] = [];
    let damaged = 0;
    for (let start = 0; start < bytes.length; ) {
      const found = bytes.indexOf(0x0a, start);
      const end = found === -1 ? bytes.length : found;
      // A line without a newline was cut off while being written.
      const json = found === -1 ? null : jsonOf(bytes.subarray(start, end));
      if (json === null) damaged++;
      else values.push(JSON.parse(json));
      start = end + 1;
    }
    if (damaged === 0) this.#size = bytes.length;
    return { values, damaged };
  }

  /**
   * Appends lines. They are on disk when the promise resolves.
   * @returns false, without appending, if the file has changed since the last write; the caller must then replace it
   * @throws HostFailure if the lines cannot be written
   */
  async append(values: Iterable<unknown>): Promise<boolean> {
    const size = this.#size;
    if (size === null) return false;
    this.#size = null;
    let fd: number;
    try {
      fd = openSync(this.#path, constants.O_WRONLY | constants.O_APPEND | safeFlags);
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
      // If this fails, the content on disk is unknown, so `#size` remains null.
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
   * Replaces the file atomically. The lines are on disk when the promise resolves.
   * @throws HostFailure if the file cannot be replaced
   */
  async replace(values: Iterable<unknown>): Promise<void> {
    const temporary = `${this.#path}.tmp`;
    const lines = encode(values);
    this.#size = null;
    try {
      // A killed agent may have left a temporary file.
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

function readAll(path: string, maxBytes: number): Buffer {
  const fd = openSync(path, constants.O_RDONLY | safeFlags);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new HostFailure(`${path} is not a file`);
    if (stats.size > maxBytes) throw new HostFailure(`${path} is larger than any file that this agent writes`);
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
