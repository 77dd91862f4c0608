import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DirectoryInUse, lockDirectory } from './instance-lock.ts';

const directory = () => mkdtempSync(join(tmpdir(), 'muster-lock-'));

describe.runIf(process.platform === 'linux')('the lock of a data directory', () => {
  it('is held by one at a time, under whatever name the directory is reached', async () => {
    const place = directory();
    const release = await lockDirectory(place, 'orchestrator');
    const link = `${place}-link`;
    symlinkSync(place, link);
    await expect(lockDirectory(link, 'orchestrator')).rejects.toThrow(DirectoryInUse);
    // Another program's data may be in the same place, and another place is another lock.
    await (await lockDirectory(place, 'agent'))();
    await (await lockDirectory(directory(), 'orchestrator'))();
    await release();
    await (await lockDirectory(place, 'orchestrator'))();
  });

  it('ends with its process, however that ends', async () => {
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
    await (await lockDirectory(place, 'orchestrator'))();
  });

  it('is a file in the directory, that nobody else can put there, and gone when let go', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    const release = await lockDirectory(place, 'orchestrator');
    expect(readdirSync(place)).toEqual([expect.stringMatching(/^orchestrator-lock\./)]);
    await release();
    expect(readdirSync(place)).toEqual([]);
  });

  it('of a process that is gone, whose number another has, or of before the boot, counts for nothing', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    await (await lockDirectory(place, 'orchestrator'))();
    const release = await lockDirectory(place, 'orchestrator');
    const [held = ''] = readdirSync(place);
    const parts = held.split('.');
    const like = (index: number, value: string) => parts.with(index, value).with(4, '00').join('.');
    await release();
    for (const stale of [like(1, '4194304'), like(2, '1'), like(3, 'b-0')]) writeFileSync(join(place, stale), '');
    const again = await lockDirectory(place, 'orchestrator');
    expect(readdirSync(place).length).toBe(1);
    await again();
    writeFileSync(join(place, like(4, '00')), '');
    await expect(lockDirectory(place, 'orchestrator')).rejects.toThrow(DirectoryInUse);
    expect(readdirSync(place)).toEqual([like(4, '00')]);
  });

  it('is got by at most one of many that start at once, over what a dead one left', async () => {
    const place = mkdtempSync(join(tmpdir(), 'muster-lock-'));
    writeFileSync(join(place, `orchestrator-lock.4194304.1.b.00`), '');
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => lockDirectory(place, 'orchestrator')));
    const got = all.filter((outcome) => outcome.status === 'fulfilled');
    expect(got.length).toBeLessThanOrEqual(1);
    expect(readdirSync(place).length).toBe(got.length);
  });
});
