import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isUlid } from '@muster/protocol';

const ending = '.cast';

/**
 * The transcript files in a directory, named `ID.cast`. Every ID must be a ULID, because arbitrary text could refer to
 * a file outside the directory.
 */
export class TranscriptFiles {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** @param directory created if it does not exist; accessible only to its owner */
  static async open(directory: string): Promise<TranscriptFiles> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    return new TranscriptFiles(directory);
  }

  /**
   * Creates a session's file, which must not exist yet. Syncs the directory, so that the file survives a power failure.
   * @returns the path of the file, and a handle for appending
   */
  async create(sessionId: string): Promise<{ path: string; handle: FileHandle }> {
    if (!isUlid(sessionId)) throw new TypeError(`${sessionId} is not a session id`);
    const path = this.#pathOf(sessionId);
    const handle = await open(path, 'ax', 0o600);
    try {
      await syncDirectory(this.#directory);
    } catch (error) {
      await handle.close();
      await rm(path, { force: true });
      throw error;
    }
    return { path, handle };
  }

  /** @returns the size in bytes; null if no file exists */
  async size(sessionId: string): Promise<number | null> {
    if (!isUlid(sessionId)) return null;
    try {
      return (await stat(this.#pathOf(sessionId))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Iterates over the first bytes. Opens the file on the first read, so an unread iterator need not be closed. */
  async *beginning(sessionId: string, length: number): AsyncGenerator<Uint8Array> {
    if (length > 0) yield* createReadStream(this.#pathOf(sessionId), { end: length - 1 }) as AsyncIterable<Buffer>;
  }

  /** @returns bytes `from` to `to`, or fewer at the end of the file. @throws a file system error */
  async part(sessionId: string, from: number, to: number): Promise<Uint8Array> {
    const handle = await open(this.#pathOf(sessionId), 'r');
    try {
      const bytes = new Uint8Array(Math.max(0, to - from));
      let length = 0;
      for (let read = -1; read !== 0 && length < bytes.length; length += read)
        read = (await handle.read(bytes, length, bytes.length - length, from + length)).bytesRead;
      return bytes.subarray(0, length);
    } finally {
      await handle.close();
    }
  }

  async truncate(sessionId: string, length: number): Promise<void> {
    const handle = await open(this.#pathOf(sessionId), 'r+');
    try {
      await handle.truncate(length);
      await handle.datasync();
    } finally {
      await handle.close();
    }
  }

  async remove(sessionId: string): Promise<void> {
    if (isUlid(sessionId)) await rm(this.#pathOf(sessionId), { force: true });
  }

  async ids(): Promise<string[]> {
    const names = (await readdir(this.#directory)).filter((name) => name.endsWith(ending));
    return names.map((name) => name.slice(0, -ending.length)).filter(isUlid);
  }

  #pathOf(sessionId: string): string {
    return join(this.#directory, `${sessionId}${ending}`);
  }
}

/** Syncs the directory, so that a new file in it survives a power failure. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
