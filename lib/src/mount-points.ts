import { readFileSync } from 'node:fs';

/**
 * Returns the paths at which something is mounted: a file system, a directory, or a single file. Device numbers do not
 * show a bind mount from the same file system, and the status of a mount may be refused to root (FUSE).
 */
export function readMountPoints(): ReadonlySet<string> {
  // The fifth field of each line is the mount point, proc_pid_mountinfo(5).
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return new Set(lines.flatMap((line) => unescaped(line.split(' ')[4] ?? '') || []));
}

/** Decodes the octal escapes of spaces, tabs, newlines, and backslashes. */
export const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
