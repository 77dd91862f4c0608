import { randomBytes, randomInt } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';

/** Another process works in the directory. */
export class DirectoryInUse extends Error {}

/** How often it is tried while another holds the directory, which may be giving way at the same time. */
const attempts = 5;

/**
 * Holds a data directory for this process: two orchestrators on one directory would share an identity and answer for
 * each other's agents.
 *
 * Each process that wants it puts a file of its own in the directory, whose name says which process it is, and then
 * looks whether another that runs has one there. Of two, the later looks when both files are there, so that never both
 * hold it; both may give way, and try again a moment later. The files of processes that are gone, however they ended,
 * count for nothing and are removed; a name is never used twice, so that no file in use can be. It holds between
 * processes that see each other in /proc, and on Linux. The directory must be open to nobody else.
 * @param what distinguishes the programs that may share a directory
 * @returns lets go
 * @throws DirectoryInUse
 */
export async function lockDirectory(directory: string, what: string): Promise<() => Promise<void>> {
  if (process.platform !== 'linux') return async () => {};
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'latin1').catch(() => '')).trim();
  const startTicks = await startTicksOf(process.pid);
  for (let attempt = 1; ; attempt++) {
    const name = `${what}-lock.${process.pid}.${startTicks}.${bootId}.${randomBytes(6).toString('hex')}`;
    const release = () => rm(`${directory}/${name}`, { force: true });
    await writeFile(`${directory}/${name}`, '', { flag: 'wx', mode: 0o600 });
    try {
      if (!(await heldByOther(directory, what, name, bootId))) return release;
    } catch (error) {
      await release();
      throw error;
    }
    await release();
    if (attempt === attempts)
      throw new DirectoryInUse(
        `the data directory ${directory} is in use by another ${what}: stop that one, or choose another directory`,
      );
    await setTimeout(randomInt(10, 50));
  }
}

async function heldByOther(directory: string, what: string, ours: string, currentBoot: string): Promise<boolean> {
  let held = false;
  for (const name of await readdir(directory)) {
    if (name === ours || !name.startsWith(`${what}-lock.`)) continue;
    const [, pid, startTicks, bootId] = /\.(\d+)\.(\d+)\.([\w-]*)\.[0-9a-f]+$/.exec(name) ?? [];
    if (pid === undefined || startTicks === undefined) continue;
    if (bootId === currentBoot && (await startTicksOf(Number(pid))) === startTicks) held = true;
    else await rm(`${directory}/${name}`, { force: true });
  }
  return held;
}

/** When a process started, in the kernel's ticks since boot, which tells it from a later one with the same number. */
async function startTicksOf(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  // The second field, the program's name in parentheses, may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' || fields[0] === 'X' ? null : (fields[19] ?? null);
}
