import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { openScratch } from '../../../tools/suite/scratch.ts';

let installed = false;

/**
 * Ensures that this process kills its descendants and removes its scratch directory when it exits: normally, because of
 * an exception or a signal, or because its parent was killed. After a SIGKILL, the children exit by themselves, and the
 * next run removes the directory.
 */
export function endEverythingAtExit(): void {
  if (installed) return;
  installed = true;
  const scratch = openScratch();
  process.env.TMPDIR = scratch.onDisk;
  process.env.MUSTER_TEST_MEMORY = scratch.inMemory;
  process.on('exit', () => {
    killDescendants();
    scratch.remove();
  });
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(name, () => process.exit(128 + constants.signals[name]));
  if (process.channel) {
    process.on('disconnect', () => process.exit(1));
    process.channel.unref();
  }
}

/** Kills all descendants. Stops all of them first, so that none can start another process in the meantime. */
function killDescendants(): void {
  const found = new Set<number>();
  for (let fresh = descendants(); fresh.length > 0; fresh = descendants().filter((pid) => !found.has(pid)))
    for (const pid of fresh) {
      found.add(pid);
      signal(pid, 'SIGSTOP');
    }
  for (const pid of found) signal(pid, 'SIGKILL');
  // Waits at most 5 s, because a process that waits for a disk exits only when the disk responds.
  for (let look = 0; look < 500 && descendants().length > 0; look++) Atomics.wait(sleeper, 0, 0, 10);
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has exited.
  }
}

/** Returns the PIDs of all descendants that are not zombies. */
function descendants(): number[] {
  const childrenOf = new Map<number, number[]>();
  for (const name of processIds()) {
    const [state, parent] = stateAndParent(name);
    if (parent !== 0 && state !== 'Z') childrenOf.set(parent, [...(childrenOf.get(parent) ?? []), Number(name)]);
  }
  const below = (pid: number): number[] => (childrenOf.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(process.pid);
}

/** Returns all PIDs. Empty on systems without /proc, where descendants exit when their IPC channel closes. */
function processIds(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

function stateAndParent(pid: string): [state: string, parent: number] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state = '', parent = '0'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return [state, Number(parent)];
  } catch {
    return ['', 0];
  }
}
