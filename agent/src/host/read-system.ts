import {
  closeSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';

/** Reads system files. Never throws. Treats an unreadable file as missing. */

export function readText(path: string, encoding: 'utf8' | 'latin1' = 'utf8'): string | null {
  try {
    return readFileSync(path, encoding);
  } catch {
    return null;
  }
}

/** Returns the complete lines within the first `maxBytes` of a file, such as one in /proc, whose size is unknown. */
export function readStart(path: string, maxBytes: number): string | null {
  let file: number | null = null;
  try {
    file = openSync(path, 'r');
    const parts: Buffer[] = [];
    let length = 0;
    while (length <= maxBytes) {
      const part = Buffer.alloc(64 * 1024);
      const count = readSync(file, part);
      if (count === 0) return Buffer.concat(parts).toString();
      parts.push(part.subarray(0, count));
      length += count;
    }
    const start = Buffer.concat(parts).subarray(0, maxBytes);
    return start.subarray(0, start.lastIndexOf('\n') + 1).toString();
  } catch {
    return null;
  } finally {
    if (file !== null) closeSync(file);
  }
}

export function exists(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

export function linkTarget(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** Returns a path with all symbolic links resolved; null if it cannot be resolved. */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** Returns the status of a path, without following a link; null if it does not exist. */
export function linkStatus(path: string): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}

/**
 * Returns a stamp that changes when the file or the target of a symbolic link changes; empty if the file is missing.
 */
export function stampOf(path: string): string {
  const stamp = (stats: Stats | undefined): string =>
    stats === undefined ? '' : `${stats.dev}:${stats.ino}:${stats.ctimeMs}:${stats.mtimeMs}`;
  try {
    const own = lstatSync(path, { throwIfNoEntry: false });
    return own?.isSymbolicLink() === true
      ? `${stamp(own)} ${stamp(statSync(path, { throwIfNoEntry: false }))}`
      : stamp(own);
  } catch {
    return '';
  }
}

/** Returns the names in a directory, sorted; empty if the directory cannot be read. */
export function namesIn(path: string): string[] {
  try {
    return readdirSync(path).sort();
  } catch {
    return [];
  }
}

export interface FileStatus {
  isFile: boolean;
  mode: number;
  uid: number;
  size: number;
}

/** Returns a file's status. Follows symbolic links. */
export function fileStatus(path: string): FileStatus | null {
  try {
    const stats = statSync(path);
    return { isFile: stats.isFile(), mode: stats.mode & 0o7777, uid: stats.uid, size: stats.size };
  } catch {
    return null;
  }
}
