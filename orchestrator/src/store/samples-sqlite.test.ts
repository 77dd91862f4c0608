import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openSqliteSamples } from './samples-sqlite.ts';
import { openSqliteFile } from './sqlite-connection.ts';

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

it('a file that is none of samples is left as it is, and the error says which and what to do', async () => {
  const { file, open } = await fileOf((path) => writeFile(path, 'my diary\n'.repeat(1000)));
  await expect(open()).rejects.toThrow(
    `${file} cannot be opened: file is not a database. It holds nothing but samples: with it, its -wal and its -shm moved`,
  );
  expect(await readFile(file, 'utf8')).toBe('my diary\n'.repeat(1000));
});

it('a file that was written by a newer release is not touched', async () => {
  const { file, open } = await fileOf((path) => {
    const db = openSqliteFile(path);
    db.pragma('user_version = 99');
    db.close();
  });
  await expect(open()).rejects.toThrow(`${file} was written by a newer Muster: start that one`);
});
