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

/** The disk did not take what had to be recorded: nothing may be done that depends on it. */
export class JournalFailure extends Error {
  constructor(error: unknown, doing: string) {
    super(hostFailure(error, doing).message);
    this.name = 'JournalFailure';
  }
}

/**
 * A file of checked lines that is only ever added to. From time to time everything that still counts is written to a new
 * file with the next number, which takes the place of the old one by being renamed.
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
   * Opens the newest file and reads it. A torn end, from a machine that lost power while writing, is cut off.
   * @param directory there, and ours alone
   * @param replay    called with each line's value, in order; what it throws is thrown on
   * @param damaged   called when lines are lost that are not the last: the disk has damaged what was synced
   */
  static open(directory: string, replay: (value: unknown) => void, damaged: (detail: string) => void): JournalLog {
    const generations = readdirSync(directory)
      .map((name) => /^journal-(\d{8})\.log$/.exec(name)?.[1])
      .filter((number) => number !== undefined)
      .map(Number)
      .sort((a, b) => a - b);
    const newest = generations.at(-1);
    // What was not renamed never counted, and what was replaced counts no more.
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
        damaged(`${lost.length} bytes of the journal cannot be read; they are kept in ${copy}`);
      }
      ftruncateSync(fd, end);
    }
    fsyncSync(fd);
    log.#synced = end;
    if (newest === undefined) syncDirectoryAt(directory);
    return log;
  }

  /** Bytes of the file in use. */
  get size(): number {
    return this.#size;
  }

  /** It takes nothing more until it is replaced: what the disk has of it is not sure. */
  get isBroken(): boolean {
    return this.#broken !== null;
  }

  /**
   * Adds a line. It survives the end of this process, but not that of the machine before `sync`.
   * @throws JournalFailure when the disk does not take it; the line is then not there
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

  /** Resolves once every line added so far is on disk. Calls that wait together share one sync. */
  sync(): Promise<void> {
    const target = this.#size;
    const turn = this.#syncing.then(async () => {
      if (this.#broken !== null) throw this.#broken;
      if (this.#synced >= target) return;
      const covers = this.#size;
      await new Promise<void>((resolve, reject) => {
        fdatasync(this.#fd, (error) => {
          if (error === null) return resolve();
          // What the kernel failed to write once, it may report as written the next time: nothing here can be
          // trusted any more until it is written anew.
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
   * Starts the next file with these lines in place of everything that is there. Waits for the disk: for quiet moments.
   * @throws JournalFailure; the old file is then still in use
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
        // It would count, at the next start, instead of what is added to the old one from now on.
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
      // It counts no more, and goes at the next start.
    }
  }

  async close(): Promise<void> {
    await this.#syncing;
    closeSync(this.#fd);
  }
}

const pathOf = (directory: string, generation: number): string =>
  `${directory}/journal-${String(generation).padStart(8, '0')}.log`;

/** @returns where the last whole line ends */
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
