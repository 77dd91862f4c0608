import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { systemClock } from '../../../../lib/src/clock.ts';
import { errnoOf, HostFailure } from '../failure.ts';
import { runCommand } from '../processes/run-command.ts';
import type { Ownership } from './inspect.ts';
import { makeDirectory } from './make-directory.ts';

/** Access control lists, which Node.js can neither read nor set. */

/** Name of a file that exists for a moment, to find out which permissions new files get. */
export const aclProbe = '.muster-probe.tmp';

/**
 * Whether new files in the directory inherit an ACL. The kernel ignores the umask where there is a default ACL: only
 * without one does a new file get all permissions with one umask and none with the other.
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
 * Removes the ACLs of a file or directory, and sets these permissions. Where this machine has no program that does it,
 * an ACL stays.
 * @param path of an open one below /proc, so that it cannot be replaced
 * @returns whether new files in the directory inherit no ACL; true for a file
 */
export async function removeAcls(path: string, type: 'file' | 'directory', mode: number): Promise<boolean> {
  const isGone = () => type === 'file' || !hasDefaultAcl(path);
  // Without the entry for the group it gets the permissions that the ACL hid.
  const group = `g::${(mode >> 3) & 7}`;
  if ((await isDone('setfacl', ['-b', '-m', group, '--', path])) && isGone()) return true;
  // Some releases of GNU cp replace ACLs by those of another file, which has none.
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
  return isGone();
}

/** The refusal to make or change something that an ACL would give to more users than declared. */
export const aclStays = (directory: string, path: string, { mode }: Ownership): HostFailure =>
  new HostFailure(
    `${directory} has a default ACL, which gives users that it names what mode ${mode.toString(8).padStart(4, '0')} gives the group, and this machine has no setfacl to keep it from ${path}. Install the package acl, run setfacl -k ${directory}, or declare a mode that gives the group no more than others.`,
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
