import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sampleAt } from '../../../test/samples.ts';
import { openSqliteFile, openSqliteReader } from '../sqlite/sqlite-connection.ts';
import { openSqliteSamples } from './samples-sqlite.ts';

async function fileOf(make: (file: string) => unknown) {
  const directory = await mkdtemp(join(tmpdir(), 'muster-samples-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'metrics.db');
  await make(file);
  const onFatal = (reason: Error) => {
    throw reason;
  };
  return { file, open: () => openSqliteSamples({ file, retentionSecs: 3600, onFatal }) };
}

test('leaves a file that is not a sample file unchanged, and suggests moving it', async () => {
  const { file, open } = await fileOf((path) => writeFile(path, 'my diary\n'.repeat(1000)));
  await expect(open()).rejects.toThrow(
    `${file} cannot be opened: file is not a database. It contains only samples: move the file, its -wal, and its -shm away`,
  );
  expect(await readFile(file, 'utf8')).toBe('my diary\n'.repeat(1000));
});

test('suggests moving a sample file only if it cannot be opened because it is damaged', async () => {
  const { file } = await fileOf(() => {});
  const nowhere = join(file, '..', 'gone', 'metrics.db');
  const opening = openSqliteSamples({ file: nowhere, retentionSecs: 3600, onFatal: () => {} });
  await expect(opening).rejects.toMatchObject({
    message: expect.stringMatching(/metrics\.db cannot be opened: ENOENT/),
  });
  await expect(opening).rejects.toMatchObject({ message: expect.not.stringContaining('out of the way') });
});

test('leaves a sample file from a newer release unchanged', async () => {
  const { file, open } = await fileOf((path) => {
    const db = openSqliteFile(path);
    db.pragma('user_version = 99');
    db.close();
  });
  await expect(open()).rejects.toThrow(`A newer release of Muster wrote ${file}: start that release`);
});

test('shrinks the sample file after chunks are dropped, keeps space for the next chunks, and loses no samples', async () => {
  const { file, open } = await fileOf(() => {});
  const store = await open();
  const t0 = 1_800_000_000 - (1_800_000_000 % 600);
  const load = (from: number, agents: number) =>
    Promise.all(
      Array.from({ length: agents }, (_, agent) =>
        store.add(
          `agent-${agent}`.padEnd(32, '0'),
          Array.from({ length: 200 }, (_, n) => sampleAt(from + n, { memory_total: 2 ** 45 + n, uptime: n })),
        ),
      ),
    );
  // Creates six chunks. Five of them are dropped below.
  for (let slice = 0; slice < 5; slice++) await load(t0 + slice * 600, 100);
  await load(t0 + 3000, 20);
  await store.dropBefore(t0 - 1);
  const reader = openSqliteReader(file);
  const before = (reader.pragma('page_count', { simple: true }) as number) * 4096;
  reader.close();
  expect(before).toBeGreaterThan(6_000_000);
  expect(await store.dropBefore(t0 + 3000)).toBe(5);
  await load(t0 + 3200, 20);
  await expect.poll(async () => (await stat(file)).size).toBeLessThan(before / 2);
  expect(await store.since('agent-7'.padEnd(32, '0'), 0, 1_000)).toHaveLength(400);
  await store.close();
  const db = openSqliteFile(file);
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  db.close();
});
