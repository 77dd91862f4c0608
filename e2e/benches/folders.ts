import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { afterEach } from 'vitest';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/**
 * Creates a temporary directory for the programs that a test starts. The directory is directly in /tmp, because
 * Chromium creates a socket in it, and the path of a socket is limited to 107 bytes.
 */
export function temporary(): string {
  const folder = mkdtempSync('/tmp/muster-benches-');
  folders.push(folder);
  return folder;
}

/** Returns the names of the entries that benches left in the directory. */
export const left = (folder: string) => readdirSync(folder).filter((name) => name.startsWith('muster-'));
