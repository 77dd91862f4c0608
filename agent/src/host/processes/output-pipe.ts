import { execFile, spawn } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { hostFailure } from '../failure.ts';
import { withoutInherited } from './inherited-files.ts';

/**
 * A pipe that a program writes to. A real one: what Node itself would give the program is a socket, which cannot be
 * opened as /dev/stdout or /dev/stderr; and a file would be emptied by `echo x > /dev/stderr`.
 */
export interface OutputPipe {
  /** For the program; closed by `started`. */
  readonly writeFd: number;
  readonly output: Socket;
  /** To be called when the program has its end of it, or will never have. */
  started(): void;
  /**
   * Reads no more. Whatever still writes to it goes on, and writes to nobody: it must not die of that, nor wait for ever.
   */
  letGo(): void;
}

/**
 * Makes as many pipes.
 * @param directories where one can be made for a moment, the first that works; memory before disk
 * @throws HostFailure
 */
export async function openPipes(
  count: number,
  directories: readonly string[] = ['/dev/shm', '/run', tmpdir()],
): Promise<OutputPipe[]> {
  let failure: unknown = new Error('there is no directory for temporary files');
  for (const parent of directories) {
    let directory: string | null = null;
    try {
      directory = mkdtempSync(`${parent}/.muster-`);
      const paths = Array.from({ length: count }, (_, i) => `${directory}/${i}`);
      await promisify(execFile)('mkfifo', ['-m', '600', ...paths]);
      return paths.map(openPipe);
    } catch (error) {
      failure = error;
    } finally {
      if (directory !== null) rmSync(directory, { recursive: true, force: true });
    }
  }
  throw hostFailure(failure, 'make a pipe for the output of a program');
}

function openPipe(path: string): OutputPipe {
  // Opening one end waits for the other, unless there is one already: this one.
  const both = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  const readFd = openSync(path, constants.O_RDONLY);
  const writeFd = openSync(path, constants.O_WRONLY);
  closeSync(both);
  const output = new Socket({ fd: readFd, readable: true, writable: false });
  let open = true;
  let over = false;
  output.once('close', () => (over = true));
  // The number is another file's once it is closed.
  output.once('end', () => (over = true));
  output.on('error', () => (over = true));
  return {
    writeFd,
    output,
    started() {
      if (open) closeSync(writeFd);
      open = false;
    },
    letGo() {
      try {
        if (!over) drain(readFd);
      } catch {
        // No open file is left for it: what still writes learns that nobody reads.
      }
      output.destroy();
    },
  };
}

/** Leaves the reading to a program that ends with the last writer, also when the agent is long gone. */
function drain(readFd: number): void {
  const path = `/proc/self/fd/${readFd}`;
  // Opened anew, since this end does not wait for input, as the program must.
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
