import { syncDirectory, writeFileAtomically } from './atomic-write.ts';
import { PathWalk } from './path-walk.ts';

/**
 * Replaces a file owned by root atomically, and makes the change durable. Creates missing directories.
 * @throws HostFailure if the write fails
 */
export async function writeRootFile(path: string, text: string, mode: number): Promise<void> {
  const walk = new PathWalk();
  try {
    await walk.within(path, 'make', async (parent, name) => {
      await writeFileAtomically(parent, name, { content: { bytes: Buffer.from(text) }, uid: 0, gid: 0, mode });
      syncDirectory(parent);
    });
  } finally {
    walk.close();
  }
}
