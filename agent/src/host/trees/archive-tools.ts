import { closeSync, openSync, readSync } from 'node:fs';
import type { Clock } from '../../../../lib/src/clock.ts';
import type { ProcessIdentity } from '../../../../lib/src/process-identity.ts';
import { HostFailure } from '../failure.ts';
import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { pathOfProgram } from '../processes/transient-scope.ts';

/** Lists and unpacks archives with the system's programs. */

export type ArchiveFormat = 'tar' | 'tar.gz' | 'tar.xz' | 'tar.zst' | 'zip';

/** The programs that a format needs. */
const programs: Readonly<Record<ArchiveFormat, readonly string[]>> = {
  tar: ['tar'],
  'tar.gz': ['tar', 'gzip'],
  'tar.xz': ['tar', 'xz'],
  'tar.zst': ['tar', 'zstd'],
  zip: ['unzip'],
};
const decompression: Readonly<Record<ArchiveFormat, readonly string[]>> = {
  tar: [],
  'tar.gz': ['--gzip'],
  'tar.xz': ['--xz'],
  'tar.zst': ['--zstd'],
  zip: [],
};

export interface Tools {
  clock: Clock;
  startedProcess(process: ProcessIdentity): void;
}

/** Milliseconds for listing or unpacking an archive. */
const timeLimit = 30 * 60_000;

/**
 * Determines the format of an archive from its first bytes.
 * @throws HostFailure if the format is unknown, or the machine lacks a program for it
 */
export function formatOf(path: string): ArchiveFormat {
  const fd = openSync(path, 'r');
  const start = Buffer.alloc(512);
  try {
    readSync(fd, start, 0, start.length, 0);
  } finally {
    closeSync(fd);
  }
  const format = formatOfBytes(start);
  if (format === null)
    throw new HostFailure('the content is not an archive in the format tar.gz, tar.xz, tar.zst, tar, or zip');
  const missing = programs[format].find((program) => pathOfProgram(program) === null);
  if (missing !== undefined)
    throw new HostFailure(`the archive has the format ${format}, which needs the program ${missing}; install it`);
  return format;
}

function formatOfBytes(start: Buffer): ArchiveFormat | null {
  const beginsWith = (hex: string) => start.subarray(0, hex.length / 2).toString('hex') === hex;
  if (beginsWith('1f8b')) return 'tar.gz';
  if (beginsWith('fd377a585a00')) return 'tar.xz';
  if (beginsWith('28b52ffd')) return 'tar.zst';
  if (beginsWith('504b0304') || beginsWith('504b0506')) return 'zip';
  return start.subarray(257, 262).toString('latin1') === 'ustar' ? 'tar' : null;
}

/**
 * Lists the members of an archive.
 * @param limit maximum size of the list, in bytes
 * @returns the output of the program, cut off after `limit`, and whether it was cut off
 */
export async function listArchive(
  path: string,
  format: ArchiveFormat,
  limit: number,
  tools: Tools,
): Promise<{ list: string; isCut: boolean }> {
  const command =
    format === 'zip'
      ? ['unzip', '-Z', '-s', '-T', path]
      : [
          ...['tar', '--list', '--verbose', '--numeric-owner', '--full-time', '--quoting-style=c'],
          ...[...decompression[format], `--file=${path}`, '--force-local'],
        ];
  // If an archive has endless members, `head` exits, which terminates the program.
  const shell = `{ "$@"; echo "ended $?" >&2; } | head -c ${limit}`;
  const result = await run('sh', ['-c', shell, 'sh', ...command], limit * 2, tools);
  const isCut = result.stdout.length >= limit || result.truncated;
  const ended = /ended (\d+)\n?$/.exec(result.stderr)?.[1];
  // unzip exits with 1 after a warning.
  const isRight = ended === '0' || (format === 'zip' && ended === '1');
  if (!isCut && !isRight) throw unreadable(result);
  return { list: result.stdout, isCut };
}

/**
 * Unpacks an archive into an empty directory. Owners and set-ID bits are not restored.
 * @param maxFile maximum size of a file, in bytes
 */
export async function unpackArchive(
  path: string,
  format: ArchiveFormat,
  into: string,
  options: { strip: number; maxFile: number },
  tools: Tools,
): Promise<void> {
  const command =
    format === 'zip'
      ? ['unzip', '-q', '-o', '-d', into, path]
      : [
          ...['tar', '--extract', '--no-same-owner', '--no-same-permissions', '--delay-directory-restore'],
          ...[`--strip-components=${options.strip}`, ...decompression[format]],
          ...[`--directory=${into}`, `--file=${path}`, '--force-local'],
        ];
  const blocks = Math.ceil(options.maxFile / 512) + 8;
  const result = await run('sh', ['-c', `ulimit -f ${blocks}; exec "$@"`, 'sh', ...command], 8192, tools);
  if (result.exitCode !== 0 && !(format === 'zip' && result.exitCode === 1)) throw unreadable(result);
}

const run = (program: string, args: readonly string[], outputCap: number, tools: Tools): Promise<CommandResult> =>
  runCommand({ program, args, timeLimit, outputCap, started: (process) => tools.startedProcess(process) }, tools.clock);

function unreadable({ stderr, timedOut }: CommandResult): HostFailure {
  if (timedOut) return new HostFailure(`the archive could not be processed within ${timeLimit / 60_000} minutes`);
  const words =
    stderr
      .replace(/ended \d+\n?$/, '')
      .trim()
      .split('\n')[0]
      ?.slice(0, 300) ?? '';
  return new HostFailure(`the archive cannot be read${words === '' ? '' : `: ${words}`}`);
}

/** Removes a tree, even one that belongs to another user. That user cannot redirect rm to another directory. */
export async function removeTree(path: string, tools: Tools): Promise<void> {
  const result = await run('rm', ['-rf', '--one-file-system', '--', path], 4096, tools);
  if (result.exitCode !== 0) throw new HostFailure(`cannot remove ${path}: ${result.stderr.trim().slice(0, 300)}`);
}

/** Makes everything on the file system of a path durable. */
export async function syncFileSystem(path: string, tools: Tools): Promise<void> {
  await run('sync', ['-f', path], 1024, tools);
}
