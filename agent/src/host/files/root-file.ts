import { readFileSync } from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';
import { syncDirectory, writeFileAtomically } from './atomic-write.ts';
import { PathWalk } from './path-walk.ts';

/**
 * Returns the content of a file, with one character for each byte (latin1), or null if it does not exist.
 * @throws HostFailure if it cannot be read
 */
export function readRootFile(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw hostFailure(error, `read ${path}`);
  }
}

/**
 * Replaces a file owned by root atomically, and makes the change durable. Creates missing directories.
 * @throws HostFailure if the write fails
 */
export async function writeRootFile(path: string, content: string | Buffer, mode: number): Promise<void> {
  const walk = new PathWalk();
  try {
    await walk.within(path, 'make', async (parent, name) => {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content;
      await writeFileAtomically(parent, name, { content: { bytes }, uid: 0, gid: 0, mode });
      syncDirectory(parent);
    });
  } finally {
    walk.close();
  }
}
