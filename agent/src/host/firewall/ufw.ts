import { rmSync } from 'node:fs';
import { HostFailure } from '../failure.ts';
import { writeRootFile } from '../files/root-file.ts';
import type { Runner } from '../processes/run-command.ts';
import { exists, fileStatus, readText } from '../read-system.ts';
import { reasonOf, run, workDirectory } from './programs.ts';

/** Reads and replaces the rule files of ufw(8), and loads them as ufw does. */

export const ufwFiles = { 4: '/etc/ufw/user.rules', 6: '/etc/ufw/user6.rules' } as const;
export const ufwSettings = '/etc/ufw/ufw.conf';
const restorePrograms = { 4: 'iptables-restore', 6: 'ip6tables-restore' } as const;

/** Keeps the rules of other chains. Waits 10 seconds for another program's lock. */
const restoreOptions = ['-n', '-w', '10'];

type Family = 4 | 6;

export const isUfwActive = (): boolean => /^\s*ENABLED=yes\s*$/m.test(readText(ufwSettings) ?? '');

/** Reports whether ufw has rule files, even if it is not active. */
export const hasUfw = (): boolean => exists(ufwFiles[4]);

/** Reports whether ufw writes rules for IPv6. */
export const ufwUsesIpv6 = (): boolean =>
  /^\s*IPV6=["']?yes["']?\s*$/m.test(readText('/etc/default/ufw') ?? '') &&
  exists('/proc/sys/net/ipv6') &&
  exists(ufwFiles[6]);

/** Returns the command that loads a rule file from standard input. */
export const restoreCommand = (family: Family): string => [restorePrograms[family], ...restoreOptions].join(' ');

/**
 * Replaces the chains of a rule file in the kernel, in one transaction.
 * @param mode `test` only checks the rules
 * @throws HostFailure if the program refuses the rules; nothing has changed in that case
 */
export async function restore(family: Family, text: string, mode: 'load' | 'test', runner: Runner): Promise<void> {
  const path = `${workDirectory}/next.ufw`;
  await writeRootFile(path, text, 0o600);
  const args = [...restoreOptions, ...(mode === 'test' ? ['--test'] : []), path];
  const result = await run(restorePrograms[family], args, runner);
  rmSync(path, { force: true });
  if (result.exitCode !== 0)
    throw new HostFailure(`${restorePrograms[family]} refused the firewall rules: ${reasonOf(result)}`);
}

/** Replaces a rule file, and keeps its mode. */
export async function writeUfwFile(family: Family, text: string): Promise<void> {
  const path = ufwFiles[family];
  if (readText(path) !== text) await writeRootFile(path, text, fileStatus(path)?.mode ?? 0o640);
}
