import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../config.ts';

/** Backups one after the other in a directory, each under the time at which it was made: as a timer makes them. */

const ours = /^muster-\d{8}T\d{6}Z\.backup(\.partial)?$/;

/**
 * @param named a file, or a directory in which the backup gets a name
 * @returns the file, and the directory if that was named
 */
export async function placeOfBackup(named: string, now: number): Promise<{ file: string; series: string | null }> {
  const about = await stat(named).catch(() => null);
  if (!about?.isDirectory()) return { file: named, series: null };
  const stamp = new Date(now).toISOString().replace(/[-:]|\.\d+/g, '');
  return { file: join(named, `muster-${stamp}.backup`), series: named };
}

/** @throws ConfigError unless it is a number of backups */
export function numberToKeep(text: string | null): number | null {
  if (text === null) return null;
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new ConfigError(`--keep takes how many backups stay, 1 or more, not ${text}`);
  return Number(text);
}

/**
 * Removes all but the newest, and what killed ones left. Other names are none of ours.
 * @returns names of the backups that are gone
 */
export async function keepNewest(directory: string, keep: number): Promise<string[]> {
  const found = (await readdir(directory)).filter((name) => ours.test(name)).sort();
  const whole = found.filter((name) => name.endsWith('.backup'));
  const old = whole.slice(0, Math.max(0, whole.length - keep));
  for (const name of [...old, ...found.filter((one) => one.endsWith('.partial'))])
    await rm(join(directory, name), { force: true });
  return old;
}
