import { expect, test } from 'vitest';
import { fileChanges } from './file-changes.ts';

const file = (path: string, sha256 = 'a', executable = false) => ({ path, sha256, size: 1, executable });

test('finds files that were added, removed, and changed in content or mode', () => {
  const before = [file('same'), file('gone'), file('other'), file('mode')];
  const after = [file('new'), file('same'), file('mode', 'a', true), file('other', 'b')];
  expect(fileChanges(before, after).map(({ path, change }) => [path, change])).toEqual([
    ['gone', 'removed'],
    ['mode', 'changed'],
    ['new', 'added'],
    ['other', 'changed'],
  ]);
  expect(fileChanges(before, before)).toEqual([]);
});
