import { expect, test } from 'vitest';
import { tagsThatFit } from './tag-room.ts';

const tags = ['environment=staging', 'role=web', 'site=paris', 'tier=gold'];

test.each([
  [60, [0]],
  [180, [0]],
  [240, [0, 1]],
  [340, [0, 1, 2]],
  [400, [0, 1, 2, 3]],
])('fits into %s pixels the tags at %j', (room, indexes) => {
  expect(tagsThatFit(tags, room)).toEqual(indexes);
});

test('fits a short tag after a long one that does not fit', () => {
  expect(tagsThatFit(['beat=10000', 'environment=staging', 'role=web', 'site=paris'], 216)).toEqual([0, 2]);
});

test('keeps one tag even if it is too long, and none of an empty list', () => {
  expect([tagsThatFit([], 200), tagsThatFit([`a=${'b'.repeat(500)}`], 100), tagsThatFit(['a', 'b'], 50)]).toEqual([
    ...[[], [0], [0, 1]],
  ]);
});
