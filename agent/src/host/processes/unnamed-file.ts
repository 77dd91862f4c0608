import { randomBytes } from 'node:crypto';
import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { hostFailure } from '../failure.ts';
import { writeAll } from '../write-all.ts';

/**
 * Creates an anonymous file with this content and opens it for reading, so that it can be passed to a program as a file
 * descriptor.
 * @param directories candidates for the file; the first one that works is used, memory before disk
 */
export function openUnnamed(
  content: string,
  directories: readonly string[] = ['/dev/shm', '/run', tmpdir()],
): { fd: number; close(): void } {
  let failure: unknown = new Error('there is no directory for temporary files');
  for (const directory of directories) {
    const path = `${directory}/.muster-${randomBytes(12).toString('hex')}`;
    try {
      const fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
      unlinkSync(path);
      try {
        writeAll(fd, Buffer.from(content, 'utf8'));
      } catch (error) {
        closeSync(fd);
        throw error;
      }
      return { fd, close: () => closeSync(fd) };
    } catch (error) {
      failure = error;
    }
  }
  throw hostFailure(failure, 'create a file for the text of a script');
}
