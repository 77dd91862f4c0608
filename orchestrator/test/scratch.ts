import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `npm test` sets this environment variable to a directory that it removes afterward. */
const memory = process.env.MUSTER_TEST_MEMORY ?? '/dev/shm';

/**
 * Creates a directory for one suite, in memory if there is enough space, so that hundreds of small databases do not
 * wait for a shared disk. The caller must delete the directory.
 */
export function scratchDirectory(prefix: string): string {
  return mkdtempSync(join(hasFreeMemory() ? memory : tmpdir(), prefix));
}

function hasFreeMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize > 1024 ** 3;
  } catch {
    return false;
  }
}
