import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a temporary directory, which is removed when this process exits.
 * @param parent parent directory; null for the system's temporary directory
 */
export function scratchDirectory(name: string, parent: string | null = null): string {
  const path = mkdtempSync(join(parent ?? tmpdir(), `muster-bench-${name}-`));
  process.on('exit', () => rmSync(path, { recursive: true, force: true }));
  return path;
}
