import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';
import type { PathWalk } from './path-walk.ts';

/**
 * Reads the start of a regular file that another user may control, in one bounded read. Unlike `inspect`, accepts a
 * file with several hard links, so the caller must not show its content.
 * @param limit maximum number of bytes
 * @returns null if there is no regular file at the path
 * @throws HostFailure if the path walk refuses the path, or the file cannot be read
 */
export function readStart(walk: PathWalk, path: string, limit: number): Buffer | null {
  return walk.within(path, 'null', (parent, name) => {
    let fd: number;
    try {
      // Without O_NONBLOCK, opening a FIFO that has no writer would block.
      fd = openSync(parent.child(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if (['ENOENT', 'ELOOP', 'ENXIO'].includes(errnoOf(error) ?? '')) return null;
      throw hostFailure(error, `read ${path}`);
    }
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile()) return null;
      const buffer = Buffer.allocUnsafe(Math.min(stats.size, limit));
      let length = 0;
      while (length < buffer.length) {
        const count = readSync(fd, buffer, length, buffer.length - length, length);
        if (count === 0) break;
        length += count;
      }
      return buffer.subarray(0, length);
    } catch (error) {
      throw hostFailure(error, `read ${path}`);
    } finally {
      closeSync(fd);
    }
  });
}
