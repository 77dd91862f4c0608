import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `npm test` names a folder of its own, which it removes. */
const memory = process.env.MUSTER_TEST_MEMORY ?? '/dev/shm';

/**
 * Makes a directory for one suite, in memory where there is plenty: what these suites ask of a database is the same
 * there, and hundreds of small databases do not wait for a disk that others use too. The caller deletes it.
 */
export function scratchDirectory(prefix: string): string {
  return mkdtempSync(join(roomInMemory() ? memory : tmpdir(), prefix));
}

function roomInMemory(): boolean {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize > 1024 ** 3;
  } catch {
    return false;
  }
}
