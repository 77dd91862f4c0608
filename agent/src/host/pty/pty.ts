import { closeSync, readSync, writeSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { executable } from '@muster/protocol/executable';
import { errnoOf, HostFailure } from '../failure.ts';
import { setOpenOwnership } from '../files/ownership.ts';
import { markInheritable } from '../processes/inherited-files.ts';

/**
 * Pseudo-terminals. Of node-pty only what opens and resizes them is used: it would lose what a program shows last while
 * nobody reads, and stop this whole process while a program does not read what is typed.
 */
export interface Pty {
  /** What a program opens to be in it, such as `/dev/pts/3`. */
  readonly path: string;
  /** Keeps the terminal from being taken for deserted until the program has opened it; closed by `started`. */
  readonly outerFd: number;
  started(): void;
  /** Who may open it by its path, with which mode; before `started`. @throws HostFailure */
  giveTo(uid: number, gid: number, mode: number): void;
  /** Reads on, after `output` said that this is enough. */
  resume(): void;
  /** From here on the end of what there is to read is the end. Jobs left in it may write on, without end. */
  finish(): void;
  /** @returns how many of the bytes it took; 0 when it has no room now; all when nobody is there to get them */
  write(bytes: Uint8Array): number;
  resize(cols: number, rows: number): void;
  /** Hangs up. What was not read is lost; `ended` is not called. */
  close(): void;
}

export interface PtyEvents {
  /** What was shown. The bytes are the caller's own again when this returns. @returns whether to read on */
  output(bytes: Buffer): boolean;
  /** All was read, and nobody is there any more; or, after `finish`, all was read. The terminal is closed. Once. */
  ended(): void;
}

/** More than the kernel keeps of a terminal. What is read beyond that, others have shown since the end. Bytes. */
const restBytes = 64 * 1024;

/** One for all: what is read is handed on before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * Opens one; nothing is read before `resume`.
 * @throws HostFailure
 */
export async function openPty(cols: number, rows: number, events: PtyEvents): Promise<Pty> {
  const binding = await loadBinding();
  let opened: ReturnType<typeof binding.open>;
  try {
    opened = binding.open(cols, rows);
  } catch (error) {
    throw new HostFailure(
      `this machine gives no terminal: ${(error as Error).message} Either there are kernel.pty.max of them, or the agent has too many open files`,
    );
  }
  const { master, slave, pty: path } = opened;
  const forgets = [markInheritable(master), markInheritable(slave)];
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
    forgets[0]!();
    stream.destroy();
  }
  function started(): void {
    if (!isOuterOpen) return;
    isOuterOpen = false;
    forgets[1]!();
    closeSync(slave);
  }
  function end(): void {
    if (state === 'closed') return;
    close();
    events.ended();
  }
  // The kernel's way to say that nobody is in the terminal any more is an error.
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
        throw new HostFailure(`${path} cannot be given to user ${uid}: ${errnoOf(error) ?? (error as Error).message}`);
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

type Binding = ReturnType<typeof import('@lydell/node-pty/requireBinary.js')['requireBinary']>;

let addonDirectory: string | null = null;

/** Where the single executable may put the native part of terminals, which it brings with it. */
export function keepPtyAddonIn(directory: string): void {
  addonDirectory = directory;
}

async function loadBinding(): Promise<Binding> {
  try {
    const carried = addonDirectory === null ? undefined : executable()?.addon('pty', addonDirectory);
    if (carried !== undefined) return carried as Binding;
    // Most agents never have a terminal, and should not pay for it.
    const { requireBinary } = await import('@lydell/node-pty/requireBinary.js');
    return requireBinary('pty.node');
  } catch (error) {
    throw new HostFailure(
      `there are no terminals on this kind of system (${process.platform}, ${process.arch}): ${(error as Error).message.split('\n')[0]}`,
    );
  }
}
