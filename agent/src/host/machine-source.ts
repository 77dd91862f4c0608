import { readdirSync, statfs } from 'node:fs';
import { exists, readText } from './read-system.ts';

/** Capacity of a file system, in bytes. */
export interface Capacity {
  total: number;
  free: number;
}

/** Reads the files and file systems from which metrics are computed. */
export interface MachineSource {
  /**
   * Returns the content of a file in /proc or /sys, or null if it cannot be read.
   * @param encoding latin1 keeps each byte as a character, for names that the kernel treats as bytes
   */
  text(path: string, encoding?: 'utf8' | 'latin1'): string | null;
  /** Returns the names in a directory, unsorted; empty if the directory cannot be read. */
  names(path: string): readonly string[];
  exists(path: string): boolean;
  /** Returns the capacity of the file system mounted at `path` (latin1). May never settle if the disk hangs. */
  capacity(path: string): Promise<Capacity>;
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
  capacity: (path) =>
    new Promise((resolve, reject) => {
      statfs(Buffer.from(path, 'latin1'), (error, { frsize, bsize, blocks, bfree } = {} as never) => {
        if (error !== null) return reject(error);
        const unit = frsize || bsize;
        return resolve({ total: blocks * unit, free: bfree * unit });
      });
    }),
};
