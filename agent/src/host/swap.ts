import { closeSync, constants, fstatSync, fsync, openSync, readSync, statfsSync } from 'node:fs';
import { HostFailure, hostFailure } from './failure.ts';
import { setProtectedOwnership } from './files/ownership.ts';
import { failureText, lastLine } from './processes/failure-text.ts';
import { missingProgram } from './processes/find-program.ts';
import { type Runner, runInEnglish } from './processes/run-command.ts';

/** Creates, observes, and enables swap files with the programs of util-linux. */

/** Priorities of the swap areas in use, by path. */
export type Swaps = ReadonlyMap<string, number>;

/** The relevant properties of a swap file. Its content is irrelevant. */
export interface SwapFile {
  /** Bytes. */
  size: number;
  uid: number;
  gid: number;
  mode: number;
  uuid: string;
  /** May be empty. */
  label: string;
}

const minute = 60_000;
/** Milliseconds for writing a file, or for reading back all of its pages. */
const longLimit = 60 * minute;

async function run(program: string, args: readonly string[], timeLimit: number, runner: Runner, doing: string) {
  const result = await runInEnglish(program, args, { timeLimit, outputCap: 1024 * 1024 }, runner);
  if (result.exitCode === 0 && !result.truncated) return result.stdout;
  throw new HostFailure(`cannot ${doing}: ${failureText(result, program, timeLimit, lastLine)}`);
}

/** Returns how to install a missing program; null if none is missing. */
export function missingSwapProgram(): string | null {
  const missing = ['mkswap', 'swapon', 'swapoff'].find((program) => missingProgram(program) !== null);
  return missing === undefined ? null : `there is no program ${missing}; install the package \`util-linux\``;
}

/** @throws HostFailure if swapon fails */
export async function readSwaps(runner: Runner): Promise<Swaps> {
  if (missingProgram('swapon') !== null) return new Map();
  return parseSwaps(
    await run('swapon', ['--show=NAME,PRIO', '--noheadings', '--raw'], minute, runner, 'list the swap'),
  );
}

/** @param text output of `swapon --show=NAME,PRIO --noheadings --raw` */
export const parseSwaps = (text: string): Map<string, number> =>
  new Map([...text.matchAll(/^(\S+) (-?\d+)$/gm)].map(([, name = '', priority]) => [name, Number(priority)]));

/** @param options in the format of fstab(5) */
export async function swapOn(path: string, options: string, runner: Runner): Promise<void> {
  await run('swapon', ['-o', options, '--', path], minute, runner, `use ${path} for swap`);
}

export async function swapOff(path: string, runner: Runner): Promise<void> {
  try {
    await run('swapoff', ['--', path], longLimit, runner, `stop using ${path} for swap`);
  } catch (error) {
    if (!(error instanceof HostFailure) || !error.message.includes('Cannot allocate memory')) throw error;
    throw new HostFailure(
      `${error.message}: there is not enough free memory for the contents of the swap file; stop some programs first`,
    );
  }
}

/** Types of file systems on which the kernel refuses swap files, by their magic numbers in statfs(2). */
const refused: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x9123683e, 'btrfs'],
  [0x2fc12fc1, 'zfs'],
]);

/** Returns the type of a directory's file system if that type does not support swap files; otherwise null. */
export function refusedFileSystem(directory: string): string | null {
  try {
    return refused.get(statfsSync(directory).type) ?? null;
  } catch (error) {
    throw hostFailure(error, `determine the type of the file system of ${directory}`);
  }
}

/** Page sizes that Linux supports. The page size determines the position of a swap file's signature. */
const pageSizes = [4096, 8192, 16_384, 65_536];
const signature = 'SWAPSPACE2';
const headerSize = 65_536;

/**
 * Inspects a file in a directory that only root can change.
 * @returns the swap file; null if the file is not a swap file
 * @throws HostFailure if it cannot be read
 */
export function readSwapFile(path: string): (SwapFile & { hasHoles: boolean }) | null {
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(fd);
      const header = Buffer.alloc(headerSize);
      if (!stats.isFile() || readSync(fd, header, 0, headerSize, 0) < headerSize) return null;
      const page = pageSizes.find((size) => header.toString('latin1', size - signature.length, size) === signature);
      if (page === undefined) return null;
      const { uid, gid, mode, size, blocks } = stats;
      return {
        ...{ uid, gid, mode: mode & 0o7777, hasHoles: blocks * 512 < size },
        // The size of the file may have changed in the meantime.
        size: Math.min(size, (header.readUInt32LE(1028) + 1) * page),
        uuid: header.toString('hex', 1036, 1052).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
        label: header.toString('utf8', 1052, 1068).replace(/\0.*$/s, ''),
      };
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw hostFailure(error, `read ${path}`);
  }
}

/**
 * Creates a swap file at a path where none exists, in a directory that only root can change.
 * @param file if `uuid` is absent, mkswap chooses one
 */
export async function makeSwapFile(
  path: string,
  { uuid, label, ...file }: Omit<SwapFile, 'uuid' | 'label'> & Partial<SwapFile>,
  runner: Runner,
): Promise<void> {
  const doing = `create the swap file ${path}`;
  try {
    // Ensures that no other user can ever read the file.
    closeSync(openSync(path, 'wx', 0o600));
    await allocate(path, file.size, runner);
    const identity = [...(uuid === undefined ? [] : ['-U', uuid]), ...(label ? ['-L', label] : [])];
    await run('mkswap', [...identity, '--', path], minute, runner, doing);
    setProtectedOwnership(path, file);
    await synced(path);
  } catch (error) {
    throw hostFailure(error, doing);
  }
}

/** Allocates a file without holes. */
async function allocate(path: string, size: number, runner: Runner): Promise<void> {
  const doing = `allocate ${size} bytes for ${path}`;
  try {
    await run('fallocate', ['-l', String(size), '--', path], minute, runner, doing);
  } catch (error) {
    // Some file systems do not support allocation, so the blocks are written instead.
    if (!(error instanceof HostFailure) || !/not supported|not installed/i.test(error.message)) throw error;
    const args = [
      `of=${path}`,
      'if=/dev/zero',
      'bs=1M',
      `count=${size}`,
      'iflag=count_bytes,fullblock',
      'conv=notrunc',
    ];
    await run('dd', args, longLimit, runner, doing);
  }
}

function synced(path: string): Promise<void> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  return new Promise<void>((resolve, reject) =>
    fsync(fd, (error) => {
      closeSync(fd);
      if (error === null) resolve();
      else reject(error);
    }),
  );
}
