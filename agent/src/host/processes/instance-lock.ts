import { randomBytes, randomInt } from 'node:crypto';
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { identityOf, isRunning, type ProcessIdentity } from './run-command.ts';

/** Another agent works in the directory. */
export class DirectoryInUse extends Error {}

/** How often it is tried while another holds the directory, which may be giving way at the same time. */
const attempts = 5;

/**
 * Holds the data directory for this process: two agents on one journal would each undo what the other records.
 *
 * Each process that wants it puts a file of its own in the directory, whose name says which process it is, and then
 * looks whether another that runs has one there. Of two, the later looks when both files are there, so that never both
 * hold it; both may give way, and try again a moment later. The files of processes that are gone, however they ended,
 * count for nothing and are removed; a name is never used twice, so that no file in use can be. It holds between
 * processes that see each other in /proc, and on Linux. The directory must be open to nobody else.
 * @returns lets go
 * @throws DirectoryInUse
 */
export async function lockDirectory(directory: string): Promise<() => void> {
  if (process.platform !== 'linux') return () => {};
  const { pid, startTicks, bootId } = identityOf(process.pid);
  for (let attempt = 1; ; attempt++) {
    const name = `agent-lock.${pid}.${startTicks}.${bootId}.${randomBytes(6).toString('hex')}`;
    const release = () => rmSync(`${directory}/${name}`, { force: true });
    closeSync(openSync(`${directory}/${name}`, 'wx', 0o600));
    try {
      if (!heldByOther(directory, name)) return release;
    } catch (error) {
      release();
      throw error;
    }
    release();
    if (attempt === attempts)
      throw new DirectoryInUse(
        `the data directory ${directory} is in use by another agent: stop that one, or choose another with --data-dir`,
      );
    await setTimeout(randomInt(10, 50));
  }
}

/** The process that holds the data directory; null: none does, or it cannot be told here. */
export function holderOf(directory: string): number | null {
  for (const name of readdirSync(directory)) {
    const holder = processIn(name);
    if (holder !== null && isRunning(holder)) return holder.pid;
  }
  return null;
}

/** Which process a file is of; null: it is no file of a lock. */
function processIn(name: string): ProcessIdentity | null {
  const [, pid, startTicks, bootId] = /^agent-lock\.(\d+)\.(\d+)\.([\w-]*)\.[0-9a-f]+$/.exec(name) ?? [];
  if (pid === undefined || startTicks === undefined || bootId === undefined) return null;
  return { pid: Number(pid), startTicks, bootId };
}

function heldByOther(directory: string, ours: string): boolean {
  let held = false;
  for (const name of readdirSync(directory)) {
    const holder = name === ours ? null : processIn(name);
    if (holder === null) continue;
    if (isRunning(holder)) held = true;
    else rmSync(`${directory}/${name}`, { force: true });
  }
  return held;
}
