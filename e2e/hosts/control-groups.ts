import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Each machine has its own control group in each hierarchy that systemd needs: the named and the unified one on a
 * hybrid host, else only the unified one. Two machines in one group would take it from each other.
 */
const hierarchies = (): string[] => {
  const mounted = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , type, options]) => type === 'cgroup2' || (type === 'cgroup' && options?.includes('name=systemd')));
  return mounted.map(([, path]) => path as string);
};

/** Creates the groups of a machine. @returns the files that a process writes its id to, to join the groups */
export function makeControlGroups(name: string): string[] {
  return hierarchies().map((hierarchy) => {
    mkdirSync(join(hierarchy, name), { recursive: true });
    return join(hierarchy, name, 'cgroup.procs');
  });
}

/** Processes in matching groups, at any depth. */
export function processesOf(wanted: (name: string) => boolean): { group: string; pid: number }[] {
  return matching(wanted).flatMap(({ name, path }) =>
    foldersOf(path)
      .flatMap((folder) => read(join(folder, 'cgroup.procs')).split('\n').filter(Boolean))
      .map((pid) => ({ group: name, pid: Number(pid) })),
  );
}

/** Kills all processes in the groups of a machine, and waits until they have exited. */
export async function endControlGroups(name: string): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    // A zero is a process of another PID namespace that this one cannot see.
    const pids = processesOf((other) => other === name)
      .map(({ pid }) => pid)
      .filter((pid) => pid > 0);
    if (pids.length === 0) return;
    for (const pid of pids)
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process ended by itself.
      }
    await sleep(10);
  }
  throw new Error(`processes of ${name} do not end`);
}

/** Removes empty groups with a matching name. */
export function removeControlGroups(wanted: (name: string) => boolean): void {
  for (const { path } of matching(wanted))
    for (const folder of foldersOf(path).reverse())
      try {
        rmdirSync(folder);
      } catch {
        // A process is still leaving the group; the next test run removes the group.
      }
}

function matching(wanted: (name: string) => boolean): { name: string; path: string }[] {
  return hierarchies().flatMap((hierarchy) =>
    readdirSync(hierarchy, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && wanted(entry.name))
      .map(({ name }) => ({ name, path: join(hierarchy, name) })),
  );
}

/** A folder and all folders below it, parents first. */
function foldersOf(path: string): string[] {
  if (!existsSync(path)) return [];
  try {
    const below = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [path, ...below.flatMap(({ name }) => foldersOf(join(path, name)))];
  } catch {
    return [path];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
