import { readdirSync, statfs } from 'node:fs';
import { exists, readText } from './read-system.ts';

/** Room of a file system, in bytes. */
export interface Room {
  total: number;
  free: number;
}

/** Where measures of the machine come from. */
export interface MachineSource {
  /**
   * A file of /proc or /sys; null when it cannot be read.
   * @param encoding latin1: each byte a character, for names that are bytes to the kernel
   */
  text(path: string, encoding?: 'utf8' | 'latin1'): string | null;
  /** Names in a directory, in no order; none when it cannot be read. */
  names(path: string): readonly string[];
  exists(path: string): boolean;
  /** Room of the file system that is mounted at `path`, each byte a character. It may never settle: that is up to the disk. */
  room(path: string): Promise<Room>;
}

export const machineSource: MachineSource = {
  text: readText,
  names(path) {
    try {
      return readdirSync(path);
    } catch {
      return [];
    }
  },
  exists,
  room: (path) =>
    new Promise((resolve, reject) => {
      statfs(Buffer.from(path, 'latin1'), (error, { frsize, bsize, blocks, bfree } = {} as never) => {
        if (error !== null) return reject(error);
        const unit = frsize || bsize;
        return resolve({ total: blocks * unit, free: bfree * unit });
      });
    }),
};
