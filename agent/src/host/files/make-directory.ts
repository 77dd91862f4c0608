import { mkdirSync } from 'node:fs';

/**
 * Creates one directory with exactly the given permissions, regardless of the umask. A separate chmod would be lost if
 * the agent were killed in between.
 * @param mode permission bits; bits above 0o777 are ignored
 * @throws the error from mkdir
 */
export function makeDirectory(path: string, mode: number): void {
  const previous = process.umask(0);
  try {
    mkdirSync(path, mode & 0o777);
  } finally {
    process.umask(previous);
  }
}
