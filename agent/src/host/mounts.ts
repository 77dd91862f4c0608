import { statSync } from 'node:fs';
import { HostFailure } from './failure.ts';
import { type CommandResult, type Runner, runInEnglish } from './processes/run-command.ts';
import { exists, realPath } from './read-system.ts';
import { systemctl } from './systemd/systemd.ts';

/** Reads the mounted file systems, and mounts and unmounts them with the programs of util-linux. */

export interface Mount {
  /** The kernel's name for the device, followed by the path in brackets if only part of a file system is mounted. */
  source: string;
  type: string;
  /** Options of the mount and of its file system. */
  options: string;
  /** Options of the mount, without those of its file system. */
  ownOptions: string;
}

/** A network file system may take a long time to respond. */
const timeLimit = 120_000;

const run = (program: string, args: readonly string[], runner: Runner): Promise<CommandResult> =>
  runInEnglish(program, args, { timeLimit, outputCap: 8 * 1024 * 1024 }, runner);

/**
 * Returns the mounted file systems by mount point. If several are mounted at the same point, only the last one is
 * visible.
 * @throws HostFailure if findmnt fails
 */
export async function readMounts(runner: Runner): Promise<ReadonlyMap<string, Mount>> {
  const columns = 'TARGET,SOURCE,FSTYPE,OPTIONS,VFS-OPTIONS';
  const result = await run('findmnt', ['--json', '--list', '--output', columns], runner);
  if (result.exitCode !== 0 || result.truncated) throw failure('list the mounted file systems', result, false);
  return parseMounts(result.stdout);
}

/** @param text output of `findmnt --json` */
export function parseMounts(text: string): Map<string, Mount> {
  const { filesystems } = JSON.parse(text) as { filesystems: Record<string, string | null>[] };
  return new Map(
    filesystems.map((each) => [
      each.target ?? '',
      {
        source: each.source ?? '',
        type: each.fstype ?? '',
        options: each.options ?? '',
        ownOptions: each['vfs-options'] ?? '',
      },
    ]),
  );
}

/** Mounts the file system that /etc/fstab lists for a path. @param isSecret whether its options contain a secret */
export async function mount(path: string, isSecret: boolean, runner: Runner): Promise<void> {
  const result = await run('mount', ['--', path], runner);
  if (result.exitCode !== 0) throw failure(`mount ${path}`, result, isSecret);
}

/** Mounts a file system that is not in /etc/fstab. */
export async function mountAgain(path: string, { source, type, options }: Mount, runner: Runner): Promise<void> {
  const result = await run('mount', ['-t', type, '-o', options, '--', source, path], runner);
  if (result.exitCode !== 0) throw failure(`mount ${path}`, result, false);
}

/** Changes the options of a mounted file system. mount(8) adds the options that /etc/fstab lists for the path. */
export async function remount(path: string, options: string, isSecret: boolean, runner: Runner): Promise<void> {
  const result = await run('mount', ['-o', `remount,${options}`, '--', path], runner);
  if (result.exitCode !== 0) throw failure(`change the options of ${path}`, result, isSecret);
}

/** Unmounts a file system. @throws HostFailure if it is in use; it stays mounted */
export async function unmount(path: string, runner: Runner): Promise<void> {
  const result = await run('umount', ['--', path], runner);
  if (result.exitCode === 0) return;
  if (/\bbusy\b/.test(result.stderr))
    throw new HostFailure(
      `${path} is in use, so it stays mounted; end the programs that \`fuser -vm ${path}\` lists, and unmount any file system below it`,
    );
  throw failure(`unmount ${path}`, result, false);
}

/**
 * Makes systemd reload /etc/fstab. Otherwise, systemd may unmount a file system because of an entry that it read
 * earlier.
 */
export async function fstabChanged(runner: Runner): Promise<void> {
  if (exists('/run/systemd/system')) await systemctl(['daemon-reload'], [], timeLimit, runner);
}

/** Returns the real path of a device or a tag, such as UUID=…; null if it is neither. */
export function devicePath(device: string): string | null {
  const [, tag, value = ''] = /^(UUID|LABEL|PARTUUID|PARTLABEL)="?([^"]*)"?$/.exec(device) ?? [];
  const path = tag === undefined ? device : `/dev/disk/by-${tag.toLowerCase()}/${value}`;
  return path.startsWith('/') ? realPath(path) : null;
}

/** Reports whether two paths refer to the same directory, as with a bind mount. */
export function isSameDirectory(one: string, other: string): boolean {
  try {
    const [a, b] = [statSync(one), statSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return false;
  }
}

function failure(what: string, { stderr, timedOut, exitCode, signal }: CommandResult, isSecret: boolean): HostFailure {
  // Uses only the first line, because a hint about dmesg follows it.
  const said = isSecret ? '' : (stderr.trim().split('\n')[0] ?? '').slice(0, 500);
  const how = timedOut ? `no answer within ${timeLimit / 1000} s` : said || `exit code ${exitCode ?? signal}`;
  return new HostFailure(`cannot ${what}: ${how}`);
}
