import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A machine has a control group of its own in each hierarchy that systemd needs: with a hybrid host that is its named
 * one and the unified one, else the unified one alone. Two machines in one group would take it from each other.
 */
const hierarchies = (): string[] => {
  const mounted = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , type, options]) => type === 'cgroup2' || (type === 'cgroup' && options?.includes('name=systemd')));
  return mounted.map(([, path]) => path as string);
};

/** Makes the groups of a machine. @returns the files that a process writes itself into to be in them */
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
        // It went by itself.
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
        // Something is still leaving it; the next test run takes it away.
      }
}

function matching(wanted: (name: string) => boolean): { name: string; path: string }[] {
  return hierarchies().flatMap((hierarchy) =>
    readdirSync(hierarchy, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && wanted(entry.name))
      .map(({ name }) => ({ name, path: join(hierarchy, name) })),
  );
}

/** A folder and all below it, from the top. */
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
