import { randomBytes, randomInt } from 'node:crypto';
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { identityOf, isRunning, type ProcessIdentity } from './process-identity.ts';

/** Another process has locked the directory. */
export class DirectoryInUse extends Error {}

export type Program = 'agent' | 'orchestrator';

/** Number of attempts while another process, which may also be retrying, has locked the directory. */
const attempts = 5;

/**
 * Locks a data directory for this process, because two processes that use the same directory would overwrite each
 * other's state. Each process creates a file whose name identifies it, and then checks for files of other running
 * processes. If two processes start together, the later one sees both files, so at most one process holds the lock.
 * Both may back off and retry after a random delay. Files of processes that have exited are removed. Names are never
 * reused, so no file in use is removed. Works only on Linux, between processes that see each other in /proc. Other
 * users must not be able to write to the directory.
 * @param program program name; different programs may share a directory
 * @returns a function that releases the lock
 * @throws DirectoryInUse
 */
export async function lockDirectory(directory: string, program: Program): Promise<() => void> {
  if (process.platform !== 'linux') return () => {};
  const { pid, startTicks, bootId } = identityOf(process.pid);
  for (let attempt = 1; ; attempt++) {
    const name = `${program}-lock.${pid}.${startTicks}.${bootId}.${randomBytes(6).toString('hex')}`;
    const release = () => rmSync(`${directory}/${name}`, { force: true });
    closeSync(openSync(`${directory}/${name}`, 'wx', 0o600));
    try {
      if (!isHeldByOther(directory, program, name)) return release;
    } catch (error) {
      release();
      throw error;
    }
    release();
    if (attempt === attempts)
      throw new DirectoryInUse(
        `the data directory ${directory} is in use by another ${program}; stop that process, or choose another directory with --data-dir`,
      );
    await setTimeout(randomInt(10, 50));
  }
}

/**
 * Returns the PID of the process that has locked the directory; null if there is none, and on systems other than Linux.
 */
export function holderOf(directory: string, program: Program): number | null {
  for (const name of readdirSync(directory)) {
    const holder = processIn(name, program);
    if (holder !== null && isRunning(holder)) return holder.pid;
  }
  return null;
}

/** Returns the process that a lock file belongs to; null for any other file. */
function processIn(name: string, program: Program): ProcessIdentity | null {
  if (!name.startsWith(`${program}-lock.`)) return null;
  const [, pid, startTicks, bootId] = /\.(\d+)\.(\d+)\.([\w-]*)\.[0-9a-f]+$/.exec(name) ?? [];
  if (pid === undefined || startTicks === undefined || bootId === undefined) return null;
  return { pid: Number(pid), startTicks, bootId };
}

function isHeldByOther(directory: string, program: Program, ownName: string): boolean {
  let isHeld = false;
  for (const name of readdirSync(directory)) {
    const holder = name === ownName ? null : processIn(name, program);
    if (holder === null) continue;
    if (isRunning(holder)) isHeld = true;
    else rmSync(`${directory}/${name}`, { force: true });
  }
  return isHeld;
}
