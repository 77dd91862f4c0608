import { createWriteStream, renameSync, type WriteStream } from 'node:fs';

/**
 * A log in two files. When the current file reaches `max` bytes, it replaces the previous file, `PATH.1`, and a new
 * file starts. Keeps at least the latest `max` bytes and at most twice as many.
 */
export class BoundedLog {
  readonly #path: string;
  readonly #max: number;
  #stream: WriteStream;
  #written = 0;

  constructor(path: string, max: number) {
    this.#path = path;
    this.#max = max;
    this.#stream = this.#open();
  }

  #open(): WriteStream {
    // Ignores write errors, because a full disk must not terminate the logged program.
    return createWriteStream(this.#path, { flags: 'a', mode: 0o600 }).on('error', () => {});
  }

  write(line: string): void {
    this.#stream.write(`${line}\n`);
    this.#written += Buffer.byteLength(line) + 1;
    if (this.#written < this.#max) return;
    this.#written = 0;
    const full = this.#stream;
    try {
      // Pending data still reaches the renamed file through its descriptor. A file that is not open yet cannot be
      // renamed.
      if (full.pending) return;
      renameSync(this.#path, `${this.#path}.1`);
    } catch {
      return;
    }
    full.end();
    this.#stream = this.#open();
  }

  /**
   * Closes the log.
   * @param done called when the file contains all lines
   */
  end(done: () => void): void {
    this.#stream.end(done);
  }
}
