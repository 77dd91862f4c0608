import { expect, test } from 'vitest';
import { tagsThatFit } from './tag-room.ts';

const tags = ['environment=staging', 'role=web', 'site=paris', 'tier=gold'];

test.each([
  [60, [0]],
  [180, [0]],
  [240, [0, 1]],
  [340, [0, 1, 2]],
  [400, [0, 1, 2, 3]],
])('in %s pixels there is room for those at %j', (room, places) => {
  expect(tagsThatFit(tags, room)).toEqual(places);
});

test('a short one stands where a longer one before it does not', () => {
  expect(tagsThatFit(['beat=10000', 'environment=staging', 'role=web', 'site=paris'], 216)).toEqual([0, 2]);
});

test('none are none, and a long one is cut', () => {
  expect([tagsThatFit([], 200), tagsThatFit([`a=${'b'.repeat(500)}`], 100), tagsThatFit(['a', 'b'], 50)]).toEqual([
    ...[[], [0], [0, 1]],
  ]);
});
