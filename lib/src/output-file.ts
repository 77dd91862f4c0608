import { lstat, realpath } from 'node:fs/promises';
import { nullIfMissing } from './missing-file.ts';

/**
 * Returns the path of an output file that may be replaced, with links resolved. Commands write a temporary file and
 * rename it, which would replace a device such as `/dev/null` if the user is root.
 * @returns null if the path exists and is not a regular file
 */
export async function replaceablePath(path: string): Promise<string | null> {
  if ((await lstat(path).catch(nullIfMissing)) === null) return path;
  // The path may be a link whose target does not exist or is an unnamed pipe.
  const target = await realpath(path).catch(nullIfMissing);
  return target !== null && (await lstat(target)).isFile() ? target : null;
}
