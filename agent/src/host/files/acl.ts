import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { systemClock } from '../../../../lib/src/clock.ts';
import { errnoOf, HostFailure } from '../failure.ts';
import { runCommand } from '../processes/run-command.ts';
import type { Ownership } from './inspect.ts';
import { makeDirectory } from './make-directory.ts';

/** Detects and removes access control lists, which Node.js can neither read nor set. */

/** Name of a temporary file whose permissions show the default permissions of new files. */
export const aclProbe = '.muster-probe.tmp';

/**
 * Reports whether new files in the directory inherit an ACL. The kernel ignores the umask where a default ACL exists.
 * Without one, a new file gets mode 0777 with umask 0, and mode 0 with umask 0777.
 */
export function hasDefaultAcl(directory: string): boolean {
  return modeOfNew(directory, 0) !== 0o777 || modeOfNew(directory, 0o777) !== 0;
}

function modeOfNew(directory: string, umask: number): number {
  const fd = openProbe(`${directory}/${aclProbe}`, umask);
  try {
    unlinkSync(`${directory}/${aclProbe}`);
    return fstatSync(fd).mode & 0o777;
  } finally {
    closeSync(fd);
  }
}

function openProbe(path: string, umask: number): number {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
  const previous = process.umask(umask);
  try {
    return openSync(path, flags, 0o777);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
    unlinkSync(path);
    return openSync(path, flags, 0o777);
  } finally {
    process.umask(previous);
  }
}

/**
 * Removes the ACLs of a file or directory, and sets the given permissions. An ACL remains if the machine has no program
 * that can remove it.
 * @param path path of an open file below /proc, so that the file cannot be replaced
 * @returns whether new files in the directory inherit no ACL; true for a file
 */
export async function removeAcls(path: string, type: 'file' | 'directory', mode: number): Promise<boolean> {
  const isRemoved = () => type === 'file' || !hasDefaultAcl(path);
  // Without this entry, the group would get the permissions that the ACL masked.
  const group = `g::${(mode >> 3) & 7}`;
  if ((await isDone('setfacl', ['-b', '-m', group, '--', path])) && isRemoved()) return true;
  // In some releases of GNU cp, `--preserve=mode` also copies ACLs. Copying from a file without an ACL removes the ACL.
  const directory = mkdtempSync(`${tmpdir()}/.muster-`);
  const clean = `${directory}/clean`;
  try {
    if (type === 'directory') makeDirectory(clean, mode);
    else writeFileSync(clean, '', { mode: mode & 0o700 });
    const how = type === 'directory' ? ['-r', '-T'] : ['--attributes-only'];
    await isDone('cp', [...how, '--preserve=mode', '--', clean, type === 'directory' ? `${path}/.` : path]);
  } finally {
    rmSync(directory, { recursive: true });
  }
  return isRemoved();
}

/** Returns the error for an object that a default ACL would open to more users than declared. */
export const aclStays = (directory: string, path: string, { mode }: Ownership): HostFailure =>
  new HostFailure(
    `the default ACL of ${directory} would give other users the group permissions of mode ${mode.toString(8).padStart(4, '0')} on ${path}, and the agent cannot remove an ACL without the program setfacl. Install the package acl, remove the ACL with setfacl -k ${directory}, or declare a mode in which the group has no more permissions than others.`,
  );

const toolMs = 10_000;

async function isDone(program: string, args: readonly string[]): Promise<boolean> {
  try {
    return (await runCommand({ program, args, timeLimit: toolMs, outputCap: 1024 }, systemClock)).exitCode === 0;
  } catch (error) {
    if (error instanceof HostFailure) return false;
    throw error;
  }
}
