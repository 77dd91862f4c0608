import {
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
} from 'node:fs';
import { hostFailure } from '../host/failure.ts';
import { checkedLine, jsonOf } from '../host/files/checked-line.ts';
import { writeAll } from '../host/write-all.ts';

/** The disk rejected a record. The caller must act as if the record did not exist. */
export class JournalFailure extends Error {
  constructor(error: unknown, doing: string) {
    super(hostFailure(error, doing).message);
    this.name = 'JournalFailure';
  }
}

/**
 * An append-only file of lines with checksums. A compaction writes the current state to a new file with the next
 * number. This file takes effect when it is renamed.
 */
export class JournalLog {
  readonly #directory: string;
  #generation: number;
  #fd: number;
  #size: number;
  #synced: number;
  #syncing: Promise<void> = Promise.resolve();
  #broken: JournalFailure | null = null;

  private constructor(directory: string, generation: number, fd: number, size: number) {
    this.#directory = directory;
    this.#generation = generation;
    this.#fd = fd;
    this.#size = size;
    this.#synced = 0;
  }

  /**
   * Opens and reads the newest file. Truncates an incomplete last line, which a power failure may have left.
   * @param directory an existing directory that only the agent can access
   * @param replay called with the value of each line, in order; its errors are rethrown
   * @param damaged called if more than the last line is lost, because the disk damaged synced data
   */
  static open(directory: string, replay: (value: unknown) => void, damaged: (detail: string) => void): JournalLog {
    const generations = readdirSync(directory)
      .map((name) => /^journal-(\d{8})\.log$/.exec(name)?.[1])
      .filter((number) => number !== undefined)
      .map(Number)
      .sort((a, b) => a - b);
    const newest = generations.at(-1);
    // Temporary files never took effect, and the newest file replaces older ones.
    for (const name of readdirSync(directory)) if (/^journal-.*\.tmp$/.test(name)) unlinkSync(`${directory}/${name}`);
    for (const old of generations.slice(0, -1)) unlinkSync(pathOf(directory, old));
    const generation = newest ?? 1;
    const path = pathOf(directory, generation);
    const bytes = newest === undefined ? Buffer.alloc(0) : readFileSync(path);
    const end = readLines(bytes, replay);
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW, 0o600);
    const log = new JournalLog(directory, generation, fd, end);
    if (end < bytes.length) {
      const lost = bytes.subarray(end);
      if (lost.indexOf(0x0a) !== -1 && lost.indexOf(0x0a) !== lost.length - 1) {
        const copy = `${path}.damaged`;
        const copyFd = openSync(copy, 'w', 0o600);
        writeAll(copyFd, lost);
        closeSync(copyFd);
        damaged(`${lost.length} bytes of the journal cannot be read; they were copied to ${copy}`);
      }
      ftruncateSync(fd, end);
    }
    fsyncSync(fd);
    log.#synced = end;
    if (newest === undefined) syncDirectoryAt(directory);
    return log;
  }

  /** Size of the current file, in bytes. */
  get size(): number {
    return this.#size;
  }

  /** Whether the log rejects lines until it is replaced, because the content on disk is unknown. */
  get isBroken(): boolean {
    return this.#broken !== null;
  }

  /**
   * Appends a line. The line survives an exit of this process, but survives a power failure only after `sync`.
   * @throws JournalFailure if the disk rejects the line; the file then does not contain it
   */
  append(value: unknown): void {
    if (this.#broken !== null) throw this.#broken;
    const line = checkedLine(value);
    try {
      writeAll(this.#fd, line);
    } catch (error) {
      const failure = new JournalFailure(error, 'write the journal');
      try {
        ftruncateSync(this.#fd, this.#size);
      } catch {
        this.#broken = failure;
      }
      throw failure;
    }
    this.#size += line.length;
  }

  /** Waits until all appended lines are on disk. Concurrent calls share one sync. */
  sync(): Promise<void> {
    const target = this.#size;
    const turn = this.#syncing.then(async () => {
      if (this.#broken !== null) throw this.#broken;
      if (this.#synced >= target) return;
      const covers = this.#size;
      await new Promise<void>((resolve, reject) => {
        fdatasync(this.#fd, (error) => {
          if (error === null) return resolve();
          // After a failed sync, the kernel may report the same data as written (fsync(2)), so the file cannot be
          // trusted until it is rewritten.
          this.#broken = new JournalFailure(error, 'sync the journal');
          reject(this.#broken);
        });
      });
      this.#synced = covers;
    });
    this.#syncing = turn.catch(() => {});
    return turn;
  }

  /**
   * Replaces the file with a new one that contains the given lines. Blocks on the disk, so call it between operations.
   * @throws JournalFailure; the old file then stays in use
   */
  async replace(values: Iterable<unknown>): Promise<void> {
    await this.#syncing;
    const next = pathOf(this.#directory, this.#generation + 1);
    const temporary = `${next.slice(0, -'.log'.length)}.tmp`;
    let fd: number | null = null;
    let size = 0;
    try {
      fd = openSync(temporary, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC | constants.O_APPEND, 0o600);
      for (const value of values) {
        const line = checkedLine(value);
        writeAll(fd, line);
        size += line.length;
      }
      fsyncSync(fd);
      renameSync(temporary, next);
      syncDirectoryAt(this.#directory);
    } catch (error) {
      const failure = new JournalFailure(error, 'rewrite the journal');
      if (fd !== null) closeSync(fd);
      try {
        rmSync(temporary, { force: true });
        // Removes the new file. Otherwise, it would replace the old file at the next start, and discard the lines
        // appended to the old file since then.
        rmSync(next, { force: true });
      } catch {
        this.#broken = failure;
      }
      throw failure;
    }
    const [oldFd, old] = [this.#fd, pathOf(this.#directory, this.#generation)];
    this.#generation++;
    this.#fd = fd;
    this.#size = size;
    this.#synced = size;
    this.#broken = null;
    try {
      closeSync(oldFd);
      unlinkSync(old);
    } catch {
      // The old file has no effect, and the next start removes it.
    }
  }

  async close(): Promise<void> {
    await this.#syncing;
    closeSync(this.#fd);
  }
}

const pathOf = (directory: string, generation: number): string =>
  `${directory}/journal-${String(generation).padStart(8, '0')}.log`;

/** Replays all complete lines. @returns the offset of the first byte after them */
function readLines(bytes: Buffer, replay: (value: unknown) => void): number {
  let start = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, start);
    if (end === -1) return start;
    const json = jsonOf(bytes.subarray(start, end));
    if (json === null) return start;
    replay(JSON.parse(json));
    start = end + 1;
  }
}

export function syncDirectoryAt(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
