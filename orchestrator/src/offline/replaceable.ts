import { lstat, realpath } from 'node:fs/promises';
import { ConfigError } from '../config/faults.ts';

/**
 * Checks that an output file may be replaced. Commands write a temporary file and rename it, which would replace a
 * device such as `/dev/null` if the user is root.
 * @returns the path with links resolved
 * @throws ConfigError if the path exists and is not a file
 */
export async function replaceable(path: string): Promise<string> {
  const there = await lstat(path).catch(ifMissing);
  if (there === null) return path;
  // The path is a link whose target does not exist or is an unnamed pipe.
  const target = await realpath(path).catch(ifMissing);
  if (target !== null && (await lstat(target)).isFile()) return target;
  throw new ConfigError(`${path} exists and is not a regular file: specify a file, or - for standard output`);
}

function ifMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
