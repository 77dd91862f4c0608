import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Temporary folders for tests, named after the test run. */
export interface Scratch {
  readonly onDisk: string;
  /** Folder in memory; equal to `onDisk` if the machine has no in-memory file system. */
  readonly inMemory: string;
  remove(): void;
}

const memory = '/dev/shm';
const pattern = /^muster-run-(\d+)-(\w+)$/;

/**
 * Creates the folders for this run, and removes the folders of killed runs.
 * @param parents parent folders; by default, the usual temporary directories
 */
export function openScratch(parents: { onDisk: string; inMemory: string } = defaults()): Scratch {
  const name = `muster-run-${process.pid}-${startOf(process.pid)}`;
  const made = [...new Set([parents.onDisk, parents.inMemory])].map((parent) => {
    for (const other of readdirSync(parent)) if (isLeftOver(other)) removeAll(join(parent, other));
    const path = join(parent, name);
    mkdirSync(path, { recursive: true });
    // Makes the folders accessible, because tests also start programs as other users, which store files here.
    chmodSync(path, 0o1777);
    return path;
  });
  const [onDisk = '', inMemory = onDisk] = made;
  return { onDisk, inMemory, remove: () => made.forEach(removeAll) };
}

const defaults = () => ({ onDisk: tmpdir(), inMemory: existsSync(memory) ? memory : tmpdir() });

/** Returns a process's start time, which distinguishes it from a later process with the same PID. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? 'gone';
  } catch {
    return existsSync('/proc/self/stat') ? 'gone' : 'unknown';
  }
}

function isLeftOver(name: string): boolean {
  const [, pid, start] = pattern.exec(name) ?? [];
  return pid !== undefined && start !== startOf(Number(pid));
}

/** Removes a folder. Ignores failures, because files may belong to another user; the next run retries. */
function removeAll(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  } catch (error) {
    console.error(`${path}: ${(error as Error).message}`);
  }
}
