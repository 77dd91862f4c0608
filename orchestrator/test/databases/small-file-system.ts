import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The reason why tests cannot mount a small file system and fill it; null if they can. */
export const missingMount = (() => {
  if (process.getuid?.() !== 0) return 'mounting a small file system needs root';
  const probe = mkdtempSync(join(tmpdir(), 'muster-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', probe], { stdio: 'pipe' });
    execFileSync('umount', [probe], { stdio: 'pipe' });
    return null;
  } catch (error) {
    return `no file system can be mounted: ${(error as Error).message}`;
  } finally {
    rmSync(probe, { recursive: true, force: true });
  }
})();
