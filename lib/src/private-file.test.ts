import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';

const above = mkdtempSync(join(tmpdir(), 'muster-private-'));
afterAll(() => rmSync(above, { recursive: true, force: true }));

/** A user other than root, who is not restricted by permissions. */
const nobody = 65_534;

test('writes files to a directory that can be written but not read', () => {
  const directory = join(above, 'drop');
  mkdirSync(directory);
  if (process.getuid?.() === 0) {
    chmodSync(above, 0o711);
    chownSync(directory, nobody, nobody);
  }
  chmodSync(directory, 0o300);
  const script = `
    const { createPrivateFile, writePrivateFile } = await import('${new URL('./private-file.ts', import.meta.url)}');
    if (process.getuid() === 0) process.seteuid(${nobody});
    createPrivateFile(process.argv[1] + '/created', 'new');
    for (const content of ['old', 'new']) writePrivateFile(process.argv[1] + '/replaced', content, 'replace');`;
  execFileSync(process.execPath, ['--input-type=module', '-e', script, directory], { stdio: 'pipe' });
  chmodSync(directory, 0o700);
  for (const name of ['created', 'replaced']) {
    expect(readFileSync(join(directory, name), 'utf8')).toBe('new');
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
  }
});
