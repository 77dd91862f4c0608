import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { afterEach } from 'vitest';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/**
 * A directory for temporary files that only what the test starts writes to. Not in that of the test run: Chromium makes a
 * socket below it, whose path may have 107 bytes.
 */
export function temporary(): string {
  const folder = mkdtempSync('/tmp/muster-benches-');
  folders.push(folder);
  return folder;
}

/** Entries of the directory that benches make for themselves. */
export const left = (folder: string) => readdirSync(folder).filter((name) => name.startsWith('muster-'));
