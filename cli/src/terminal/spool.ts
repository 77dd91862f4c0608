import { randomBytes } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const pieceBytes = 64 * 1024;

/**
 * Buffers a stream in an unlinked temporary file, so that it can be read from the beginning even while it grows. No
 * other process can open the file, and it disappears when the program exits.
 */
export class Spool {
  readonly #file: FileHandle;
  #size = 0;
  #done = false;
  #error: unknown = null;
  #waiting: (() => void)[] = [];

  static async of(source: AsyncIterable<Uint8Array>): Promise<Spool> {
    const path = join(tmpdir(), `muster-${randomBytes(16).toString('hex')}`);
    const file = await open(path, 'wx+', 0o600);
    await unlink(path);
    const spool = new Spool(file);
    void spool.#fill(source);
    return spool;
  }

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  async #fill(source: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const piece of source) {
        await this.#file.appendFile(piece);
        this.#size += piece.length;
        this.#wake();
      }
    } catch (error) {
      this.#error = error;
    }
    this.#done = true;
    this.#wake();
  }

  #wake(): void {
    for (const each of this.#waiting.splice(0)) each();
  }

  /**
   * Reads from the beginning, and waits for more data.
   * @throws the source's error
   */
  async *read(): AsyncGenerator<Uint8Array> {
    for (let at = 0; ; ) {
      if (at < this.#size) {
        const { bytesRead, buffer } = await this.#file.read(
          Buffer.alloc(Math.min(pieceBytes, this.#size - at)),
          0,
          undefined,
          at,
        );
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      } else if (this.#done) {
        if (this.#error !== null) throw this.#error;
        return;
      } else {
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
    }
  }

  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }
}
