import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../config/faults.ts';

/** A directory of backups whose names contain their creation times, such as backups that a timer creates. */

const backupName = /^muster-\d{8}T\d{6}Z\.backup(\.partial)?$/;

/**
 * @param named path of the backup file, or of a directory for it
 * @returns the path of the file, and the directory if `named` is one
 */
export async function backupTarget(named: string, now: number): Promise<{ file: string; series: string | null }> {
  const about = await stat(named).catch(() => null);
  if (!about?.isDirectory()) return { file: named, series: null };
  const stamp = new Date(now).toISOString().replace(/[-:]|\.\d+/g, '');
  return { file: join(named, `muster-${stamp}.backup`), series: named };
}

/** Parses the value of `--keep`. @throws ConfigError unless it is a positive number */
export function numberToKeep(text: string | null): number | null {
  if (text === null) return null;
  if (!/^[1-9]\d{0,4}$/.test(text))
    throw new ConfigError(`--keep must be the number of backups to keep, at least 1, not ${text}`);
  return Number(text);
}

/**
 * Removes all backups except the newest ones, and temporary files left by killed commands. Does not remove other files.
 * @returns names of the removed backups
 */
export async function keepNewest(directory: string, keep: number): Promise<string[]> {
  const found = (await readdir(directory)).filter((name) => backupName.test(name)).sort();
  const complete = found.filter((name) => name.endsWith('.backup'));
  const old = complete.slice(0, Math.max(0, complete.length - keep));
  for (const name of [...old, ...found.filter((one) => one.endsWith('.partial'))])
    await rm(join(directory, name), { force: true });
  return old;
}
