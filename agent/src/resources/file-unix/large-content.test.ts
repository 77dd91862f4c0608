import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { file } from '../../converge/test/desired.ts';
import { readAccounts } from '../../host/accounts/accounts.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import { maxCopy, openContentStore } from '../../journal/content-store.ts';
import { diffFile } from './diff.ts';
import { look } from './seen.ts';

const large = 5 * 1024 * 1024;
let directory: string;
let walk: PathWalk;
beforeEach(() => {
  directory = mkdtempSync(`${tmpdir()}/muster-large-`);
  walk = new PathWalk();
});
afterEach(() => {
  walk.close();
  rmSync(directory, { recursive: true, force: true });
});

describe('a file too large for memory', () => {
  const sparse = (size: number): string => {
    const path = `${directory}/f`;
    writeFileSync(path, '');
    truncateSync(path, size);
    return path;
  };

  test('does not read a large file whose size already differs', () => {
    const desired = file(sparse(2 ** 31), { content: 'small\n' });
    const seen = look(desired, { walk, accounts: readAccounts() }, true, [6]);
    if (seen instanceof Promise) throw new Error('it was read');
    const { changes, diff } = diffFile(desired, seen, { purpose: 'plan' });
    expect(changes).toEqual([
      { field: 'content', from: `${2 ** 31} bytes`, to: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
    ]);
    expect(diff).not.toBeNull();
  });

  test('hashes a large file without blocking the event loop', async () => {
    const path = sparse(64 * 1024 * 1024);
    let turns = 0;
    const beat = setInterval(() => turns++, 1);
    const seen = await look(file(path, { ensure: 'absent' }), { walk, accounts: readAccounts() }, true, [2 ** 26]);
    clearInterval(beat);
    const sha256 = createHash('sha256')
      .update(Buffer.alloc(2 ** 26))
      .digest('hex');
    expect(seen.found).toMatchObject({ type: 'file', content: { sha256, size: 2 ** 26, bytes: null } });
    expect(turns).toBeGreaterThan(3);
  });

  test('copies a file whose size equals the limit, and refuses a larger one', async () => {
    mkdirSync(`${directory}/copies`);
    const copies = openContentStore(`${directory}/copies`);
    const path = sparse(large);
    const fd = openSync(path, 'r');
    const copied = await copies.keep({ openFd: fd });
    expect(copied).toEqual({ size: large, sha256: createHash('sha256').update(Buffer.alloc(large)).digest('hex') });
    truncateSync(path, maxCopy + 1);
    await expect(copies.keep({ openFd: fd })).rejects.toThrow(/larger than 256 MiB.*nothing was changed/);
    closeSync(fd);
    expect(readdirSync(`${directory}/copies`)).toEqual([copied.sha256]);
  });
});
