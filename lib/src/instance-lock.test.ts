import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DirectoryInUse, holderOf, lockDirectory } from './instance-lock.ts';

const directory = () => mkdtempSync(join(tmpdir(), 'muster-lock-'));

describe.runIf(process.platform === 'linux')('the lock of a data directory', () => {
  test('lets only one process lock a data directory, even if another uses a different path to it', async () => {
    const locked = directory();
    const release = await lockDirectory(locked, 'orchestrator');
    const link = `${locked}-link`;
    symlinkSync(locked, link);
    await expect(lockDirectory(link, 'orchestrator')).rejects.toThrow(DirectoryInUse);
    // Allows a different program in the same directory, and the same program in another directory.
    (await lockDirectory(locked, 'agent'))();
    (await lockDirectory(directory(), 'orchestrator'))();
    release();
    (await lockDirectory(locked, 'orchestrator'))();
  });

  test('releases the lock when its process exits, even if the process is killed', async () => {
    const locked = directory();
    const program = `
      const { lockDirectory } = await import(${JSON.stringify(join(import.meta.dirname, 'instance-lock.ts'))});
      await lockDirectory(${JSON.stringify(locked)}, 'orchestrator');
      console.log('held');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await expect(lockDirectory(locked, 'orchestrator')).rejects.toThrow(/in use by another orchestrator/);
    child.kill('SIGKILL');
    await once(child, 'exit');
    (await lockDirectory(locked, 'orchestrator'))();
  });

  test('creates a lock file and removes it on release', async () => {
    const locked = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    const release = await lockDirectory(locked, 'orchestrator');
    expect(readdirSync(locked)).toEqual([expect.stringMatching(/^orchestrator-lock\./)]);
    expect(holderOf(locked, 'orchestrator')).toBe(process.pid);
    expect(holderOf(locked, 'agent')).toBeNull();
    release();
    expect(readdirSync(locked)).toEqual([]);
  });

  test('ignores lock files from exited processes, reused PIDs, and earlier boots', async () => {
    const locked = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    (await lockDirectory(locked, 'orchestrator'))();
    const release = await lockDirectory(locked, 'orchestrator');
    const [lockFile = ''] = readdirSync(locked);
    const parts = lockFile.split('.');
    const like = (index: number, value: string) => parts.with(index, value).with(4, '00').join('.');
    release();
    for (const stale of [like(1, '4194304'), like(2, '1'), like(3, 'b-0')]) writeFileSync(join(locked, stale), '');
    const again = await lockDirectory(locked, 'orchestrator');
    expect(readdirSync(locked).length).toBe(1);
    again();
    writeFileSync(join(locked, like(4, '00')), '');
    await expect(lockDirectory(locked, 'orchestrator')).rejects.toThrow(DirectoryInUse);
    expect(readdirSync(locked)).toEqual([like(4, '00')]);
  });

  test('lets at most one of many concurrent processes lock the directory, even if a dead process left a lock file', async () => {
    const locked = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    writeFileSync(join(locked, `orchestrator-lock.4194304.1.b.00`), '');
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(locked, 'orchestrator')));
    const got = all.filter((outcome) => outcome.status === 'fulfilled');
    expect(got.length).toBeLessThanOrEqual(1);
    expect(readdirSync(locked).length).toBe(got.length);
  });
});
