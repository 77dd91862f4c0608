import { mkdirSync } from 'node:fs';

/**
 * Makes one directory with exactly these permissions from its first moment, whatever the umask is: an agent killed
 * right after leaves no directory that is almost as it should be.
 * @param mode permission bits; those above 0o777 are not set
 * @throws the error of mkdir
 */
export function makeDirectory(path: string, mode: number): void {
  const previous = process.umask(0);
  try {
    mkdirSync(path, mode & 0o777);
  } finally {
    process.umask(previous);
  }
}
