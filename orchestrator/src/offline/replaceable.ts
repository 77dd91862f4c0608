import { lstat, realpath } from 'node:fs/promises';
import { ConfigError } from '../config.ts';

/**
 * What is written gets its name when it is whole, and takes the place of what has it. Whoever is root would replace a
 * device that way, and a machine without `/dev/null` is hardly one.
 * @returns the path, links followed
 * @throws ConfigError when something is there that is no file
 */
export async function replaceable(path: string): Promise<string> {
  const there = await lstat(path).catch(ifMissing);
  if (there === null) return path;
  // A link that leads nowhere, or to a pipe that has no name.
  const target = await realpath(path).catch(ifMissing);
  if (target !== null && (await lstat(target)).isFile()) return target;
  throw new ConfigError(
    `${path} is there and is no file that could be replaced: name a file, or - for standard output`,
  );
}

function ifMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
