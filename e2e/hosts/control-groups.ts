import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Returns the mount points of the cgroup hierarchies that systemd uses: the unified one and, on a hybrid host, the
 * named one. Each machine needs its own group in each hierarchy, because two systemd instances cannot manage the same
 * group.
 */
const hierarchies = (): string[] => {
  const mounted = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , type, options]) => type === 'cgroup2' || (type === 'cgroup' && options?.includes('name=systemd')));
  return mounted.map(([, path]) => path as string);
};

/** Creates a machine's groups. @returns the `cgroup.procs` files of the groups */
export function makeControlGroups(name: string): string[] {
  return hierarchies().map((hierarchy) => {
    mkdirSync(join(hierarchy, name), { recursive: true });
    return join(hierarchy, name, 'cgroup.procs');
  });
}

/** Returns the processes in matching groups and their subgroups. */
export function processesOf(isMatch: (name: string) => boolean): { group: string; pid: number }[] {
  return matching(isMatch).flatMap(({ name, path }) =>
    foldersOf(path)
      .flatMap((folder) => read(join(folder, 'cgroup.procs')).split('\n').filter(Boolean))
      .map((pid) => ({ group: name, pid: Number(pid) })),
  );
}

/** Kills all processes in a machine's groups, and waits until they have exited. */
export async function endControlGroups(name: string): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    // PID 0 represents a process that is not visible in this PID namespace.
    const pids = processesOf((other) => other === name)
      .map(({ pid }) => pid)
      .filter((pid) => pid > 0);
    if (pids.length === 0) return;
    for (const pid of pids)
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process has exited.
      }
    await sleep(10);
  }
  throw new Error(`processes of ${name} are still running 5 s after SIGKILL`);
}

/** Removes matching groups that have no processes. */
export function removeControlGroups(isMatch: (name: string) => boolean): void {
  for (const { path } of matching(isMatch))
    for (const folder of foldersOf(path).reverse())
      try {
        rmdirSync(folder);
      } catch {
        // A process is still leaving the group. The next test run removes the group.
      }
}

function matching(isMatch: (name: string) => boolean): { name: string; path: string }[] {
  return hierarchies().flatMap((hierarchy) =>
    readdirSync(hierarchy, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && isMatch(entry.name))
      .map(({ name }) => ({ name, path: join(hierarchy, name) })),
  );
}

/** Returns a directory and all directories below it, parents first. */
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
