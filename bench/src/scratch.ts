import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A directory of this process's own, gone when it ends. */
export function scratchDirectory(name: string): string {
  const path = mkdtempSync(join(tmpdir(), `muster-bench-${name}-`));
  process.on('exit', () => rmSync(path, { recursive: true, force: true }));
  return path;
}
