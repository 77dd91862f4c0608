import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PathWalk } from '../../host/files/path-walk.ts';
import type { Machine } from '../provider/provider.ts';
import { lookAtKeys, writeKeys } from './file.ts';

const user = 41_000;
let home: string;
let walk: PathWalk;
beforeEach(() => {
  home = mkdtempSync(`${tmpdir()}/muster-keys-`);
  chownSync(home, user, user);
  walk = new PathWalk();
});
afterEach(() => {
  walk.close();
  rmSync(home, { recursive: true, force: true });
});

test.runIf(process.geteuid?.() === 0)(
  'clears set-ID bits of the file when it writes to the file, and keeps other permissions',
  async () => {
    const path = `${home}/.ssh/authorized_keys`;
    mkdirSync(`${home}/.ssh`);
    chownSync(`${home}/.ssh`, user, user);
    writeFileSync(path, '# theirs\n');
    chownSync(path, user, user);
    chmodSync(path, 0o6711);
    const owner = { uid: user, gid: user, home };
    const machine = { walk, changedDirectory: () => {} } as unknown as Machine;
    await writeKeys(owner, lookAtKeys(walk, owner), '# ours\n', machine);
    expect(statSync(path)).toMatchObject({ uid: user, gid: user, mode: 0o100711 });
    expect(readFileSync(path, 'utf8')).toBe('# ours\n');
  },
);
