import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A directory of this process's own, gone when it ends.
 * @param parent null: where temporary files are
 */
export function scratchDirectory(name: string, parent: string | null = null): string {
  const path = mkdtempSync(join(parent ?? tmpdir(), `muster-bench-${name}-`));
  process.on('exit', () => rmSync(path, { recursive: true, force: true }));
  return path;
}
