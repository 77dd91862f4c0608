import { chmod, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { writePrivateFile as writeSynced } from '../../lib/src/private-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** An XDG directory: the variable counts only when it holds an absolute path, as the specification has it. */
function xdg(env: Environment, variable: string, fallback: string): string {
  const named = env[variable];
  const base = named !== undefined && isAbsolute(named) ? named : join(env.HOME || homedir(), fallback);
  return join(base, 'muster');
}

/** Where profiles, trusted certificates and the operator key are. */
export const configDirectory = (env: Environment): string => xdg(env, 'XDG_CONFIG_HOME', '.config');

/** Where session tokens are: losing them costs a sign-in. */
export const cacheDirectory = (env: Environment): string => xdg(env, 'XDG_CACHE_HOME', '.cache');

/** Makes a directory that only its owner enters, and its parents. One that is there keeps its mode. */
export async function makePrivateDirectory(path: string): Promise<void> {
  const made = await mkdir(path, { recursive: true, mode: 0o700 });
  if (made !== undefined) await chmod(path, 0o700);
}

/**
 * Writes a file that only its owner reads: after a power cut the file is old or new, never mixed.
 * @param path its directory is created if it is missing
 */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  await makePrivateDirectory(dirname(path));
  writeSynced(path, content, 'replace');
}
