import { writeSync } from 'node:fs';

/** Writes all bytes at the current position, in several calls if needed. */
export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
}
