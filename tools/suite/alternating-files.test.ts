import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { groups, omittedFiles } from './alternating-files.ts';
import { root } from './cli.ts';

const seeds = Array.from({ length: 40 }, (_, seed) => String(seed));

test('npm test runs one file of each group, and every file is selected by some seed', () => {
  const ran = new Set<string>();
  for (const MUSTER_SAMPLE_SEED of seeds) {
    const omitted = omittedFiles({ MUSTER_SAMPLE_SEED });
    for (const files of groups) {
      const kept = files.filter((file) => !omitted.includes(file));
      expect(kept).toHaveLength(1);
      ran.add(kept[0] ?? '');
    }
  }
  expect([...ran].toSorted()).toEqual(groups.flat().toSorted());
});

test('other runs omit no file', () => {
  expect(omittedFiles({})).toEqual([]);
  expect(omittedFiles({ MUSTER_SAMPLE_SEED: '1', MUSTER_EVERY_STEP: '1' })).toEqual([]);
});

test.each(groups.flat())('%s exists', (file) => expect(existsSync(join(root, file))).toBe(true));
