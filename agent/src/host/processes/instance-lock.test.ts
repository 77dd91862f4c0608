import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DirectoryInUse, lockDirectory } from './instance-lock.ts';

describe.runIf(process.platform === 'linux')('the lock of the data directory', () => {
  it('is held by one agent at a time', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    const release = await lockDirectory(place);
    await expect(lockDirectory(place)).rejects.toThrow(DirectoryInUse);
    release();
    const again = await lockDirectory(place);
    again();
  });

  it('ends with its process, however that ends', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    const program = `
      const { lockDirectory } = await import(${JSON.stringify(join(import.meta.dirname, 'instance-lock.ts'))});
      await lockDirectory(${JSON.stringify(place)});
      console.log('held');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    await expect(lockDirectory(place)).rejects.toThrow(DirectoryInUse);
    child.kill('SIGKILL');
    await once(child, 'exit');
    (await lockDirectory(place))();
  });

  it('is a file in the directory, that nobody else can put there, and gone when let go', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    const release = await lockDirectory(place);
    expect(readdirSync(place)).toEqual([expect.stringMatching(/^agent-lock\./)]);
    await release();
    expect(readdirSync(place)).toEqual([]);
  });

  it('of a process that is gone, whose number another has, or of before the boot, counts for nothing', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    await (await lockDirectory(place))();
    const release = await lockDirectory(place);
    const [held = ''] = readdirSync(place);
    const parts = held.split('.');
    const like = (index: number, value: string) => parts.with(index, value).with(4, '00').join('.');
    await release();
    for (const stale of [like(1, '4194304'), like(2, '1'), like(3, 'b-0')]) writeFileSync(join(place, stale), '');
    const again = await lockDirectory(place);
    expect(readdirSync(place).length).toBe(1);
    await again();
    writeFileSync(join(place, like(4, '00')), '');
    await expect(lockDirectory(place)).rejects.toThrow(DirectoryInUse);
    expect(readdirSync(place)).toEqual([like(4, '00')]);
  });

  it('is got by at most one of many that start at once, over what a dead one left', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    writeFileSync(join(place, `agent-lock.4194304.1.b.00`), '');
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(place)));
    const got = all.filter((outcome) => outcome.status === 'fulfilled');
    expect(got.length).toBeLessThanOrEqual(1);
    expect(readdirSync(place).length).toBe(got.length);
  });
});
