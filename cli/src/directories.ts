import { promises } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { writePrivateFile as writeSynced } from '../../lib/src/private-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns an XDG directory. As the specification requires, ignores a relative path in the variable. */
function xdg(env: Environment, variable: string, fallback: string): string {
  const named = env[variable];
  const base = named !== undefined && isAbsolute(named) ? named : join(env.HOME || homedir(), fallback);
  return join(base, 'muster');
}

/** Returns the directory for the profiles, trusted certificates, and operator key. */
export const configDirectory = (env: Environment): string => xdg(env, 'XDG_CONFIG_HOME', '.config');

/** Returns the directory for session tokens. If it is lost, the next command signs in again. */
export const cacheDirectory = (env: Environment): string => xdg(env, 'XDG_CACHE_HOME', '.cache');

/** Creates a directory with mode 0700, and its parents. Does not change the mode of an existing directory. */
export async function makePrivateDirectory(path: string): Promise<void> {
  const made = await promises.mkdir(path, { recursive: true, mode: 0o700 });
  if (made !== undefined) await promises.chmod(path, 0o700);
}

/**
 * Writes a file that only its owner can read. After a power failure, the file has either the old or the new content.
 * @param path its directory is created if it does not exist
 */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  await makePrivateDirectory(dirname(path));
  writeSynced(path, content, 'replace');
}
