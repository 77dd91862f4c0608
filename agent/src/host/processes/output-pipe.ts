import { execFile, spawn } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { hostFailure } from '../failure.ts';
import { withoutInherited } from './inherited-files.ts';

/**
 * A pipe for the output of a program. Node.js would pass a socket, which programs cannot reopen as /dev/stdout or
 * /dev/stderr. A regular file does not work either, because `echo x > /dev/stderr` would truncate it.
 */
export interface OutputPipe {
  /** The end of the pipe for the program. */
  readonly writeFd: number;
  readonly output: Socket;
  /** Closes `writeFd`. Call this when the program has started or has failed to start. */
  started(): void;
  /**
   * Stops reading. Background processes may still write; their output is discarded, so that they neither block nor die
   * of SIGPIPE.
   */
  dispose(): void;
}

/** The open ends of an unnamed FIFO. */
interface Ends {
  readFd: number;
  writeFd: number;
}

/**
 * Number of FIFOs that one call to `mkfifo` creates. One `mkfifo` process per command would double the CPU time of
 * short commands.
 */
const batch = 8;
/** Open FIFOs that no program has used. */
const spare: Ends[] = [];
/** The batch in progress. Commands that start at the same time share it, so that few spare FIFOs remain. */
let making: Promise<void> | null = null;

/**
 * Opens pipes.
 * @throws HostFailure
 */
export async function openPipes(count: number): Promise<OutputPipe[]> {
  while (spare.length < count) {
    making ??= makeFifos()
      .then((made) => void spare.push(...made))
      .finally(() => {
        making = null;
      });
    await making;
  }
  return spare.splice(0, count).map(openPipe);
}

/** Creates FIFOs in the first temporary directory that works, memory before disk. */
async function makeFifos(): Promise<Ends[]> {
  let failure: unknown;
  for (const parent of ['/dev/shm', '/run', tmpdir()]) {
    let directory: string | null = null;
    const made: Ends[] = [];
    try {
      directory = mkdtempSync(`${parent}/.muster-`);
      const paths = Array.from({ length: batch }, (_, i) => `${directory}/${i}`);
      await promisify(execFile)('mkfifo', ['-m', '600', ...paths]);
      for (const path of paths) made.push(openEnds(path));
      return made;
    } catch (error) {
      // If few file descriptors are left, opening only some of the FIFOs may still suffice.
      if (made.length > 0) return made;
      failure = error;
    } finally {
      if (directory !== null) rmSync(directory, { recursive: true, force: true });
    }
  }
  throw hostFailure(failure, 'make a pipe for the output of a program');
}

function openEnds(path: string): Ends {
  // Opens both ends at the same time, because opening one end of a FIFO blocks until the other end is open.
  const both = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const readFd = openSync(path, constants.O_RDONLY);
    try {
      return { readFd, writeFd: openSync(path, constants.O_WRONLY) };
    } catch (error) {
      closeSync(readFd);
      throw error;
    }
  } finally {
    closeSync(both);
  }
}

function openPipe({ readFd, writeFd }: Ends): OutputPipe {
  const output = new Socket({ fd: readFd, readable: true, writable: false });
  let open = true;
  let isClosed = false;
  output.once('close', () => (isClosed = true));
  // After the socket is closed, its descriptor may refer to another file.
  output.once('end', () => (isClosed = true));
  output.on('error', () => (isClosed = true));
  return {
    writeFd,
    output,
    started() {
      if (open) closeSync(writeFd);
      open = false;
    },
    dispose() {
      try {
        if (!isClosed) drain(readFd);
      } catch {
        // If too many files are open, background writers get SIGPIPE.
      }
      output.destroy();
    },
  };
}

/** Starts a `cat` that discards output until the last writer exits. It outlives the agent. */
function drain(readFd: number): void {
  const path = `/proc/self/fd/${readFd}`;
  // Reopens the pipe for `cat` in blocking mode, because the agent's own end does not block.
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  let reader: number | null = null;
  try {
    reader = openSync(path, constants.O_RDONLY);
    const stdio = withoutInherited([reader, 'ignore', 'ignore']);
    const child = spawn('cat', [], { cwd: '/', env: {}, stdio, detached: true });
    child.on('error', () => {});
    child.unref();
  } finally {
    closeSync(writer);
    if (reader !== null) closeSync(reader);
  }
}
