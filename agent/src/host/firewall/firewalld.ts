import { rmSync } from 'node:fs';
import { HostFailure } from '../failure.ts';
import { writeRootFile } from '../files/root-file.ts';
import type { Runner } from '../processes/run-command.ts';
import { exists, namesIn, readText } from '../read-system.ts';
import { reasonOf, run } from './programs.ts';

/** Reads and changes rich rules of firewalld with its programs. */

/** Rich rules by zone. */
export type ZoneRules = ReadonlyMap<string, readonly string[]>;

export const firewalldSettings = '/etc/firewalld/firewalld.conf';
export const zoneFolder = '/etc/firewalld/zones/';
const onlineProgram = '/usr/bin/firewall-cmd';
const offlineProgram = '/usr/bin/firewall-offline-cmd';

export const hasFirewalld = (): boolean => exists(onlineProgram);

/** Reports whether firewalld runs. Its directory in /run stays when it stops, and a pid file is optional. */
export function isFirewalldRunning(): boolean {
  if (!exists('/run/firewalld') && !exists('/run/firewalld.pid')) return false;
  return namesIn('/proc').some((name) => /^\d+$/.test(name) && readText(`/proc/${name}/comm`) === 'firewalld\n');
}

export const defaultZone = (): string =>
  /^\s*DefaultZone\s*=\s*(\S+)/m.exec(readText(firewalldSettings) ?? '')?.[1] ?? 'public';

/** Returns the program and the options that select the rules in effect, or those that apply after the next boot. */
const programFor = (scope: 'runtime' | 'permanent', isRunning: boolean): string[] => {
  if (scope === 'runtime') return [onlineProgram];
  return isRunning ? [onlineProgram, '--permanent'] : [offlineProgram];
};

/** Returns the output of `--list-all-zones`. @throws HostFailure if the program fails */
export async function listZones(scope: 'runtime' | 'permanent', isRunning: boolean, runner: Runner): Promise<string> {
  const [program = '', ...args] = programFor(scope, isRunning);
  const result = await run(program, [...args, '--list-all-zones'], runner);
  if (result.exitCode === 0 && !result.truncated) return result.stdout;
  throw new HostFailure(`cannot list the rules of firewalld: ${reasonOf(result)}`);
}

/** Returns the commands that add and remove rich rules, each with its arguments. Additions come first. */
export function changeCommands(
  scope: 'runtime' | 'permanent',
  isRunning: boolean,
  added: ZoneRules,
  removed: ZoneRules,
): string[][] {
  const commands = (rules: ZoneRules, verb: string) =>
    [...rules]
      .filter(([, each]) => each.length > 0)
      .map(([zone, each]) => [
        ...programFor(scope, isRunning),
        `--zone=${zone}`,
        ...each.map((rule) => `--${verb}-rich-rule=${rule}`),
      ]);
  return [...commands(added, 'add'), ...commands(removed, 'remove')];
}

/** Runs commands one after another. @throws HostFailure if one fails */
export async function runCommands(commands: readonly string[][], runner: Runner): Promise<void> {
  for (const [program = '', ...args] of commands) {
    const result = await run(program, args, runner);
    if (result.exitCode !== 0) throw new HostFailure(`firewalld refused the firewall rules: ${reasonOf(result)}`);
  }
}

/** Replaces a file; null removes it. */
export async function replaceFile(path: string, text: string | null, mode = 0o644): Promise<void> {
  if (text === null) rmSync(path, { force: true });
  else if (readText(path) !== text) await writeRootFile(path, text, mode);
}
