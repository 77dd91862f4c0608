import { appendFileSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { ManualClock } from '../../../../lib/test/manual-clock.ts';
import { sampleAt } from '../../../test/samples.ts';
import { openSampleFile } from './sample-file.ts';
import { openSqliteSamples } from './samples-sqlite.ts';

const t0 = 1_800_000_000;
vi.setConfig({ testTimeout: 30_000 });

/** Creates a directory for a sample file, and a function that opens the file with a manual clock. */
async function createFile() {
  const directory = await mkdtemp(join(tmpdir(), 'muster-sample-file-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'metrics.db');
  const clock = new ManualClock();
  const said: string[] = [];
  const log = {
    info: (_: object, message: string) => said.push(message),
    error: (fields: object, message: string) => said.push(`${message}: ${(fields as { reason: string }).reason}`),
  };
  let looks = 0;
  let lose = (_: Error): void => {};
  const open = async () => {
    const store = await openSampleFile({
      file,
      open: (lost) => {
        looks++;
        lose = lost;
        return openSqliteSamples({ file, retentionSecs: 86_400, onFatal: lost });
      },
      clock,
      log,
    });
    onTestFinished(() => store.close());
    return store;
  };
  return { directory, file, clock, said, open, lose: (reason: Error) => lose(reason), looks: () => looks };
}
const refusal = { code: 'storage_unavailable' };

test('refuses samples with a reason until a file that is not a sample file is moved away', async () => {
  const { file, clock, said, open, looks } = await createFile();
  writeFileSync(file, 'my diary\n'.repeat(1000));
  const store = await open();
  await expect(store.add('a', [sampleAt(t0)])).rejects.toMatchObject(refusal);
  for (const read of [store.since('a', 0, 9), store.averages('a', 0, 60, 9), store.latest(['a'], 0)])
    await expect(read).rejects.toMatchObject(refusal);
  expect(await store.dropBefore(t0)).toBe(0);
  expect(store.stats()).toMatchObject({ stored: 0, failed: 1, trouble: expect.stringContaining('not a database') });
  // The store checks the file repeatedly, but logs the reason for a refusal only once.
  await expect
    .poll(() => {
      clock.advance(2_000);
      return looks();
    })
    .toBeGreaterThan(2);
  expect(said).toEqual([
    expect.stringContaining(`the sample store is unavailable; will retry. Agents keep their samples`),
  ]);
  renameSync(file, `${file}.old`);
  await expect
    .poll(() => {
      clock.advance(2_000);
      return store.stats().trouble;
    })
    .toBeNull();
  expect(said.slice(1)).toEqual(['sample store recovered']);
  await store.add('a', [sampleAt(t0)]);
  expect(await store.since('a', 0, 9)).toEqual([sampleAt(t0)]);
  expect(store.stats()).toMatchObject({ stored: 1, failed: 1 });
});

test('creates a new file after the sample file was removed, and writes nothing to the removed file', async () => {
  const { directory, clock, said, open } = await createFile();
  const store = await open();
  await store.add('a', [sampleAt(t0)]);
  for (const name of readdirSync(directory)) rmSync(join(directory, name));
  clock.advance(2_000);
  await expect.poll(() => said.length).toBe(2);
  expect(said[0]).toContain('was removed or replaced while it was in use');
  expect(existsSync(join(directory, 'metrics.db'))).toBe(true);
  await store.add('a', [sampleAt(t0 + 1)]);
  expect(await store.since('a', 0, 9)).toEqual([sampleAt(t0 + 1)]);
  expect(store.stats()).toMatchObject({ stored: 2, commits: 2, failed: 0, trouble: null });
  await store.close();
  const again = await open();
  expect(await again.since('a', 0, 9)).toEqual([sampleAt(t0 + 1)]);
});

test('keeps all stored samples in a sample file that is moved away without its write-ahead log', async () => {
  const { directory, file, clock, said, open } = await createFile();
  const store = await open();
  await store.add('a', [sampleAt(t0)]);
  const aside = join(directory, 'aside.db');
  renameSync(file, aside);
  clock.advance(2_000);
  await expect.poll(() => said.at(-1)).toBe('sample store recovered');
  expect(await store.since('a', 0, 9)).toEqual([]);
  await store.close();
  renameSync(aside, file);
  const again = await open();
  expect(await again.since('a', 0, 9)).toEqual([sampleAt(t0)]);
});

test('writes nothing to a file that replaced the sample file', async () => {
  const { directory, file, clock, said, open } = await createFile();
  const other = join(directory, 'other.db');
  const restored = await openSqliteSamples({ file: other, retentionSecs: 86_400, onFatal: () => {} });
  for (let at = 0; at < 5; at++) await restored.add('restored', [sampleAt(t0 + at)]);
  await restored.close();
  const store = await open();
  for (let at = 0; at < 5; at++) await store.add('a', [sampleAt(t0 + at)]);
  renameSync(other, file);
  clock.advance(2_000);
  await expect.poll(() => said.at(-1)).toBe('sample store recovered');
  expect(await store.since('a', 0, 9)).toEqual([]);
  expect(await store.since('restored', 0, 9)).toHaveLength(5);
});

test('refuses samples until a damaged sample file is moved away', async () => {
  const { file, clock, said, open } = await createFile();
  const first = await open();
  await first.add('a', [sampleAt(t0)]);
  await first.close();
  const store = await open();
  // Damages the file while it is open.
  writeFileSync(file, Buffer.alloc(65_536, 0xa5), { flag: 'r+' });
  appendFileSync(file, Buffer.alloc(4096));
  await expect(store.add('a', [sampleAt(t0 + 1)])).rejects.toMatchObject(refusal);
  expect(store.stats().trouble).toContain('The sample file refused the write');
  renameSync(file, `${file}.damaged`);
  clock.advance(2_000);
  await expect.poll(() => said.at(-1)).toBe('sample store recovered');
  await store.add('a', [sampleAt(t0 + 1)]);
  expect(await store.since('a', 0, 9)).toEqual([sampleAt(t0 + 1)]);
});

test('replaces a failed writer, and keeps the stored samples', async () => {
  const { clock, said, open, lose } = await createFile();
  const store = await open();
  await store.add('a', [sampleAt(t0)]);
  lose(new Error('out of memory'));
  await expect(store.add('a', [sampleAt(t0 + 1)])).rejects.toMatchObject(refusal);
  expect(store.stats().trouble).toBe('out of memory');
  clock.advance(2_000);
  await expect.poll(() => store.stats().trouble).toBeNull();
  await store.add('a', [sampleAt(t0 + 1)]);
  expect(await store.since('a', 0, 9)).toEqual([sampleAt(t0), sampleAt(t0 + 1)]);
  expect(said).toEqual([expect.stringContaining('out of memory'), 'sample store recovered']);
  await store.close();
  await expect(store.add('a', [sampleAt(t0 + 2)])).rejects.toMatchObject({ code: 'draining' });
});
