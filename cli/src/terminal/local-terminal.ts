import { spawnSync } from 'node:child_process';
import { write, writeSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { CliError, exits, OutputClosed } from '../exit.ts';

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** Signals that terminate the program. */
export type EndSignal = 'SIGTERM' | 'SIGHUP' | 'SIGINT' | 'SIGQUIT';

/** The terminal or the pipes of this program. */
export interface LocalTerminal {
  /** Whether input comes from a keyboard. */
  readonly hasKeys: boolean;
  /** Whether output goes to a screen. */
  readonly hasScreen: boolean;
  /** Returns the window size; null if there is no window. */
  size(): Size | null;
  onResize(listener: () => void): void;
  /** Reads until `close`. A terminal delivers each key unprocessed and without echo. */
  read(listeners: { bytes(bytes: Uint8Array): void; end(): void }): void;
  /** Stops reading. The terminal buffers typed keys. */
  pause(): void;
  resume(): void;
  /**
   * Writes in order. Resolves when the operating system has accepted the bytes.
   * @throws OutputClosed or a write error
   */
  write(bytes: Uint8Array): Promise<void>;
  /** Prints complete lines to standard error after all pending output. */
  say(lines: string): Promise<void>;
  onSignal(listener: (signal: EndSignal) => void): void;
  /**
   * Registers a function that returns the text that the program writes to restore the screen when it exits, even after
   * an error.
   */
  beforeExit(text: () => string): void;
  /** Restores the terminal. Drops pending output. */
  close(): void;
}

const endSignals = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'] as const;

interface TerminalInput extends Readable {
  isTTY?: boolean;
  setRawMode?: (on: boolean) => unknown;
  ref?: () => unknown;
  unref?: () => unknown;
}

interface WindowStream {
  isTTY?: boolean;
  columns?: number;
  rows?: number;
  on(event: 'resize', listener: () => void): unknown;
  off(event: 'resize', listener: () => void): unknown;
}

export interface TerminalProcess {
  stdin: TerminalInput;
  stdout: WindowStream & { fd: number };
  stderr: WindowStream & { fd: number };
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** Opens the terminal or pipes of a process. */
export function openLocalTerminal(program: TerminalProcess): LocalTerminal {
  const { stdin, stdout, stderr } = program;
  const hasKeys = stdin.isTTY === true;
  const hasScreen = stdout.isTTY === true;
  const window = [stdout, stderr].find(({ isTTY }) => isTTY === true);
  const undo: (() => void)[] = [];
  let isRaw = false;
  let closed = false;
  let closingText = () => '';

  const rawMode = (raw: boolean) => {
    if (!hasKeys) return;
    try {
      stdin.setRawMode?.(raw);
      isRaw = raw;
      // Node.js's raw mode still translates line feeds, which the remote terminal has already translated, so an
      // editor's output would slant. Only `stty` can turn this off. Leaving raw mode turns it on again.
      if (raw) spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'], timeout: 5_000 });
    } catch {
      // The terminal was closed, so there are no settings to restore.
    }
  };
  const listen = (event: string, listener: () => void) => {
    program.on(event, listener);
    undo.push(() => program.off(event, listener));
  };

  // Uses fs.write rather than the stream, because a stream to a slow terminal or pipe blocks the whole program,
  // including keys and signals.
  const writer = new Writer(stdout.fd, hasScreen);

  const restoreMode = () => {
    if (closed) return;
    closed = true;
    const text = closingText();
    if (hasScreen && text !== '') writeNow(stdout.fd, text);
    rawMode(false);
    for (const each of undo) each();
    stdin.pause();
    stdin.unref?.();
  };
  // Restores the terminal even after an error.
  listen('exit', restoreMode);
  // The shell may have changed the terminal while this program was stopped.
  listen('SIGCONT', () => {
    if (!isRaw) return;
    rawMode(false);
    rawMode(true);
  });

  return {
    hasKeys,
    hasScreen,
    size: () =>
      window?.columns && window.rows
        ? { cols: Math.min(1000, window.columns), rows: Math.min(1000, window.rows) }
        : null,
    onResize: (listener) => {
      window?.on('resize', listener);
      undo.push(() => window?.off('resize', listener));
    },
    read: ({ bytes, end }) => {
      rawMode(true);
      stdin.on('data', bytes);
      stdin.on('end', end);
      // A terminal that hangs up causes a read error. Keeps the handler after `close`, because an unhandled error would
      // terminate the program.
      stdin.on('error', end);
      undo.push(() => {
        stdin.off('data', bytes);
        stdin.off('end', end);
      });
    },
    pause: () => void stdin.pause(),
    resume: () => {
      if (!closed) stdin.resume();
    },
    write: (bytes) => writer.write(bytes),
    say: async (lines) => {
      await writer.idle();
      if (closed) return;
      const end = isRaw ? '\r\n' : '\n';
      const begin = isRaw && writer.last !== 0x0a ? end : '';
      writeNow(stderr.fd, `${begin}${lines.replaceAll('\n', end)}${end}`);
    },
    onSignal: (listener) => {
      for (const signal of endSignals) listen(signal, () => listener(signal));
    },
    beforeExit: (text) => {
      closingText = text;
    },
    close: restoreMode,
  };
}

/** Writes a few bytes synchronously. Gives up after a time limit, because the reader may not be reading. */
function writeNow(fd: number, text: string): void {
  let left = Buffer.from(text);
  for (let tries = 0; left.length > 0 && tries < 50; tries++)
    try {
      left = left.subarray(writeSync(fd, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
}

/**
 * Returns the error for a failed write. EIO means that the terminal hung up, or that the disk that contains the file
 * failed.
 */
function unwritten(error: NodeJS.ErrnoException, isTerminal: boolean): Error {
  if (error.code === 'EPIPE' || (error.code === 'EIO' && isTerminal)) return new OutputClosed();
  const why = error.code === 'ENOSPC' ? 'no space left' : error.message;
  return new CliError(exits.failed, 'output_unwritten', `cannot write to standard output: ${why}`, null, {
    cause: error,
  });
}

/** Writes to a file descriptor in order and in batches. Each caller waits for its own bytes. */
class Writer {
  readonly #fd: number;
  readonly #isTerminal: boolean;
  #waiting: { bytes: Uint8Array; done: () => void; failed: (error: Error) => void }[] = [];
  #busy: Promise<void> | null = null;
  #error: Error | null = null;
  /** The last written byte; initially a newline. */
  last = 0x0a;

  constructor(fd: number, isTerminal: boolean) {
    this.#fd = fd;
    this.#isTerminal = isTerminal;
  }

  write(bytes: Uint8Array): Promise<void> {
    if (this.#error !== null) return Promise.reject(this.#error);
    const written = new Promise<void>((done, failed) => this.#waiting.push({ bytes, done, failed }));
    this.#busy ??= this.#work();
    return written;
  }

  async idle(): Promise<void> {
    while (this.#busy !== null) await this.#busy;
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0) {
      const pieces = this.#waiting.splice(0, 64);
      try {
        await this.#all(pieces.map(({ bytes }) => bytes));
        for (const { done } of pieces) done();
      } catch (error) {
        this.#error = unwritten(error as NodeJS.ErrnoException, this.#isTerminal);
        for (const { failed } of [...pieces, ...this.#waiting.splice(0)]) failed(this.#error);
      }
    }
    this.#busy = null;
  }

  async #all(pieces: Uint8Array[]): Promise<void> {
    let left = pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
    while (left.length > 0) {
      const written = await this.#some(left);
      this.last = left[written - 1] ?? this.last;
      left = left.subarray(written);
    }
  }

  #some(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) =>
      write(this.#fd, bytes, (error, written) => {
        if (error === null) resolve(written);
        // Waits and retries, because another process has made the file descriptor non-blocking.
        else if (error.code === 'EAGAIN') setTimeout(() => resolve(0), 5);
        else if (error.code === 'EINTR') resolve(0);
        else reject(error);
      }),
    );
  }
}
