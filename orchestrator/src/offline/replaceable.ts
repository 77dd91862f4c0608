import { replaceablePath } from '../../../lib/src/output-file.ts';
import { ConfigError } from '../config/faults.ts';

/**
 * Checks that an output file may be replaced.
 * @returns the path with links resolved
 * @throws ConfigError if the path exists and is not a file
 */
export async function replaceable(path: string): Promise<string> {
  const target = await replaceablePath(path);
  if (target === null)
    throw new ConfigError(`${path} exists and is not a regular file: specify a file, or - for standard output`);
  return target;
}
