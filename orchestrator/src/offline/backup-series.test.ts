import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { scratchDirectory } from '../../test/scratch.ts';
import { backupTarget, keepNewest, numberToKeep } from './backup-series.ts';

const above = scratchDirectory('muster-series-');
afterAll(() => rmSync(above, { recursive: true, force: true }));

test('derives a backup’s file name from its time if the path is a directory, and otherwise uses the path', async () => {
  const now = Date.UTC(2026, 10, 20, 3, 4, 5, 678);
  expect(await backupTarget(above, now)).toEqual({
    file: join(above, 'muster-20261120T030405Z.backup'),
    series: above,
  });
  const file = join(above, 'none');
  expect(await backupTarget(file, now)).toEqual({ file, series: null });
});

test('deletes old backups but keeps the newest backups and all other files', async () => {
  const directory = join(above, 'many');
  mkdirSync(directory);
  const others = ['muster.backup', 'muster-20260101T000000Z.backup.old', 'x-muster-20260101T000000Z.backup'];
  const days = ['01', '02', '03', '04'].map((day) => `muster-202611${day}T000000Z.backup`);
  for (const name of [...others, ...days, 'muster-20261105T000000Z.backup.partial'])
    writeFileSync(join(directory, name), '');
  expect(await keepNewest(directory, 2)).toEqual(days.slice(0, 2));
  expect(readdirSync(directory).sort()).toEqual([...others, ...days.slice(2)].sort());
  expect(await keepNewest(directory, 2)).toEqual([]);
});

test.each(['0', '-1', 'all', '1.5', ''])('refuses %j as the number of backups to keep', (text) => {
  expect(() => numberToKeep(text)).toThrow('--keep must be the number');
});
