import { expect, test } from 'vitest';
import { tagsThatFit } from './tags-that-fit.ts';

const tags = ['environment=staging', 'role=web', 'site=paris', 'tier=gold'];

test.each([
  [60, [0]],
  [180, [0]],
  [240, [0, 1]],
  [340, [0, 1, 2]],
  [400, [0, 1, 2, 3]],
])('in %s pixels, shows the tags with the indexes %j', (maxWidth, indexes) => {
  expect(tagsThatFit(tags, maxWidth)).toEqual(indexes);
});

test('skips a long tag that does not fit and shows a shorter one after it', () => {
  expect(tagsThatFit(['beat=10000', 'environment=staging', 'role=web', 'site=paris'], 216)).toEqual([0, 2]);
});

test('shows one tag even if it is too long, and none for an empty list', () => {
  expect([tagsThatFit([], 200), tagsThatFit([`a=${'b'.repeat(500)}`], 100), tagsThatFit(['a', 'b'], 50)]).toEqual([
    ...[[], [0], [0, 1]],
  ]);
});
