import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endControlGroups, processesOf, removeControlGroups } from './control-groups.ts';
import { ip, links } from './ip.ts';

/**
 * Name prefix of the namespaces, control groups, and directories of test hosts. The names contain the owner, which
 * distinguishes leftovers of killed test runs from resources in use.
 */
const prefix = 'muster-hosts';

/** Identifies this process, even after its PID is reused. */
export const owner = `${process.pid}-${startTime(process.pid)}`;
/** Returns the system-wide name of a machine in this test run. */
export const machineName = (name: string): string => `${prefix}-${owner}-${name}`;

function startTime(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

const pattern = new RegExp(`^${prefix}-(\\d+)-(\\d+)`);

/** Reports whether the name was created by a test run that is no longer running. */
function isLeftOver(name: string): boolean {
  const [, pid, since] = pattern.exec(name) ?? [];
  return pid !== undefined && startTime(Number(pid)) !== since;
}

/** Removes the machines, networks, and disks of killed test runs. */
export async function removeLeftOvers(folders: readonly string[]): Promise<void> {
  for (const group of new Set(processesOf(isLeftOver).map(({ group }) => group))) await endControlGroups(group);
  removeControlGroups(isLeftOver);
  const all = links();
  const bridges = all.filter((link) => link.linkinfo?.info_kind === 'bridge' && isLeftOver(link.ifalias ?? ''));
  for (const bridge of bridges) {
    const cables = all.filter(({ ifname }) => ifname.startsWith(`${bridge.ifname}-`));
    for (const { ifname } of [...cables, bridge]) attempt('link', 'delete', ifname);
  }
  for (const namespace of namespaces()) if (isLeftOver(namespace)) attempt('netns', 'delete', namespace);
  for (const folder of folders)
    for (const name of existsSync(folder) ? readdirSync(folder) : [])
      if (isLeftOver(name)) await removeFolder(join(folder, name));
}

/** Runs `ip`. Ignores failures, because another test run may remove the same resource at the same time. */
function attempt(...args: string[]): void {
  try {
    ip(...args);
  } catch {
    // If the resource still exists, the next test run removes it.
  }
}

const namespaces = (): string[] => (existsSync('/run/netns') ? readdirSync('/run/netns') : []);

/** Removes a directory with its contents, including immutable files. */
export async function removeFolder(path: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      rmSync(path, { recursive: true, force: true });
      return;
    } catch (error) {
      // Retries, because the kernel unmounts an overlay asynchronously.
      if (attempt === 20) throw error;
      spawnSync('chattr', ['-R', '-f', '-ia', path], { stdio: 'ignore' });
      await sleep(50);
    }
  }
}
