import { closeSync, readSync, writeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { executable } from '@muster/protocol/executable';
import { errnoOf, HostFailure } from '../failure.ts';
import { setOpenOwnership } from '../files/ownership.ts';
import { markInheritable } from '../processes/inherited-files.ts';

/**
 * A pseudo-terminal. Uses only `open` and `resize` from node-pty, because its own streams would lose the last output of
 * a program while they are paused, and would block this whole process while a program does not read its input.
 */
export interface Pty {
  /** The device for the program, such as `/dev/pts/3`. */
  readonly path: string;
  /** Prevents the terminal from reporting a hangup before the program has opened it; `started` closes it. */
  readonly outerFd: number;
  started(): void;
  /**
   * Sets the owner and mode of the device. Call this before `started`.
   * @throws HostFailure
   */
  giveTo(uid: number, gid: number, mode: number): void;
  /** Resumes reading after `output` returned false. */
  resume(): void;
  /**
   * Closes the terminal once the buffered output has been read. Does not wait for more output, because background jobs
   * could write forever.
   */
  finish(): void;
  /** @returns the number of accepted bytes: 0 if the buffer is full, all if no process has the terminal open */
  write(bytes: Uint8Array): number;
  resize(cols: number, rows: number): void;
  /** Hangs up. Unread output is lost, and `ended` is not called. */
  close(): void;
}

export interface PtyEvents {
  /** Called with output. The bytes are valid only during the call. @returns whether to continue reading */
  output(bytes: Buffer): boolean;
  /**
   * Called once the terminal is closed: when all output has been read and no process has the terminal open, or after
   * `finish`.
   */
  ended(): void;
}

/**
 * Maximum number of bytes to read after `finish`. The kernel buffers less, so anything beyond this was written after
 * `finish`.
 */
const restBytes = 64 * 1024;

/** Shared by all terminals, because each read is consumed before the next one. */
const readBuffer = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * Opens a terminal. Reads nothing until `resume` is called.
 * @throws HostFailure
 */
export async function openPty(cols: number, rows: number, events: PtyEvents): Promise<Pty> {
  const binding = await loadBinding();
  const { master, slave, pty: path } = openPair(binding, cols, rows);
  const unmarks = [markInheritable(master), markInheritable(slave)];
  let isOuterOpen = true;
  let state: 'live' | 'finishing' | 'closed' = 'live';
  let isReading = false;
  const show = (bytes: Buffer): boolean => {
    isReading = events.output(bytes);
    return isReading;
  };

  const stream = new ReadStream(master, {
    onread: {
      buffer: readBuffer,
      callback: (length, buffer) => state === 'live' && show((buffer as Buffer).subarray(0, length)),
    },
  });
  function close(): void {
    if (state === 'closed') return;
    state = 'closed';
    started();
    unmarks[0]!();
    stream.destroy();
  }
  function started(): void {
    if (!isOuterOpen) return;
    isOuterOpen = false;
    unmarks[1]!();
    closeSync(slave);
  }
  function end(): void {
    if (state === 'closed') return;
    close();
    events.ended();
  }
  // The kernel reports EIO when no process has the terminal open.
  stream.on('error', end);
  stream.on('close', end);

  let rest = restBytes;
  function readRest(): void {
    while (state === 'finishing') {
      let length = 0;
      try {
        length = readSync(master, readBuffer, 0, Math.min(readBuffer.length, rest), null);
        rest -= length;
      } catch (error) {
        if (errnoOf(error) === 'EINTR') continue;
      }
      if (length === 0) end();
      else if (!show(readBuffer.subarray(0, length))) return;
    }
  }

  return {
    path,
    outerFd: slave,
    started,
    giveTo(uid, gid, mode) {
      try {
        setOpenOwnership(slave, { uid, gid, mode });
      } catch (error) {
        throw new HostFailure(
          `cannot set the owner of ${path} to user ${uid}: ${errnoOf(error) ?? (error as Error).message}`,
        );
      }
    },
    resume() {
      isReading = true;
      if (state === 'live') stream.resume();
      else readRest();
    },
    finish() {
      if (state !== 'live') return;
      stream.pause();
      state = 'finishing';
      if (isReading) readRest();
    },
    write(bytes) {
      if (state !== 'live') return bytes.length;
      try {
        return writeSync(master, bytes, 0, bytes.length, null);
      } catch (error) {
        return errnoOf(error) === 'EAGAIN' ? 0 : bytes.length;
      }
    },
    resize(cols, rows) {
      if (state === 'live') binding.resize(master, cols, rows);
    },
    close,
  };
}

/** @throws HostFailure */
function openPair(binding: Binding, cols: number, rows: number): ReturnType<Binding['open']> {
  try {
    return binding.open(cols, rows);
  } catch (error) {
    throw new HostFailure(
      `cannot open a terminal: ${(error as Error).message} Either kernel.pty.max is reached, or the agent has too many open files`,
    );
  }
}

type Binding = ReturnType<typeof import('@lydell/node-pty/requireBinary.js')['requireBinary']>;

let addonDirectory: string | null = null;

/** Sets the directory into which the single executable unpacks its native terminal addon. */
export function keepPtyAddonIn(directory: string): void {
  addonDirectory = directory;
}

async function loadBinding(): Promise<Binding> {
  try {
    const bundled = addonDirectory === null ? undefined : executable()?.addon('pty', addonDirectory);
    if (bundled !== undefined) return bundled as Binding;
    // Loaded on demand, because most agents never open a terminal.
    const { requireBinary } = await import('@lydell/node-pty/requireBinary.js');
    return requireBinary('pty.node');
  } catch (error) {
    throw new HostFailure(
      `the agent does not support terminals on this system (${process.platform}, ${process.arch}): ${(error as Error).message.split('\n')[0]}`,
    );
  }
}
