import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DirectoryInUse, holderOf, lockDirectory } from './instance-lock.ts';

const directory = () => mkdtempSync(join(tmpdir(), 'muster-lock-'));

describe.runIf(process.platform === 'linux')('the lock of a data directory', () => {
  test('lets only one process at a time lock a data directory, by any path', async () => {
    const place = directory();
    const release = await lockDirectory(place, 'orchestrator');
    const link = `${place}-link`;
    symlinkSync(place, link);
    await expect(lockDirectory(link, 'orchestrator')).rejects.toThrow(DirectoryInUse);
    // Another program may share the directory. Another directory has its own lock.
    (await lockDirectory(place, 'agent'))();
    (await lockDirectory(directory(), 'orchestrator'))();
    release();
    (await lockDirectory(place, 'orchestrator'))();
  });

  test('releases the lock when its process ends, even if the process is killed', async () => {
    const place = directory();
    const program = `
      const { lockDirectory } = await import(${JSON.stringify(join(import.meta.dirname, 'instance-lock.ts'))});
      await lockDirectory(${JSON.stringify(place)}, 'orchestrator');
      console.log('held');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await expect(lockDirectory(place, 'orchestrator')).rejects.toThrow(/in use by another orchestrator/);
    child.kill('SIGKILL');
    await once(child, 'exit');
    (await lockDirectory(place, 'orchestrator'))();
  });

  test('creates a lock file, and removes it on release', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    const release = await lockDirectory(place, 'orchestrator');
    expect(readdirSync(place)).toEqual([expect.stringMatching(/^orchestrator-lock\./)]);
    expect(holderOf(place, 'orchestrator')).toBe(process.pid);
    expect(holderOf(place, 'agent')).toBeNull();
    release();
    expect(readdirSync(place)).toEqual([]);
  });

  test('ignores lock files of ended processes, reused PIDs, and earlier boots', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    (await lockDirectory(place, 'orchestrator'))();
    const release = await lockDirectory(place, 'orchestrator');
    const [held = ''] = readdirSync(place);
    const parts = held.split('.');
    const like = (index: number, value: string) => parts.with(index, value).with(4, '00').join('.');
    release();
    for (const stale of [like(1, '4194304'), like(2, '1'), like(3, 'b-0')]) writeFileSync(join(place, stale), '');
    const again = await lockDirectory(place, 'orchestrator');
    expect(readdirSync(place).length).toBe(1);
    again();
    writeFileSync(join(place, like(4, '00')), '');
    await expect(lockDirectory(place, 'orchestrator')).rejects.toThrow(DirectoryInUse);
    expect(readdirSync(place)).toEqual([like(4, '00')]);
  });

  test('gives the lock to at most one of many concurrent processes, even if a dead process left its file', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    writeFileSync(join(place, `orchestrator-lock.4194304.1.b.00`), '');
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(place, 'orchestrator')));
    const got = all.filter((outcome) => outcome.status === 'fulfilled');
    expect(got.length).toBeLessThanOrEqual(1);
    expect(readdirSync(place).length).toBe(got.length);
  });
});
