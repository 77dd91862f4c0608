import { expect, test } from 'vitest';
import { tagsThatFit } from './tag-room.ts';

const tags = ['environment=staging', 'role=web', 'site=paris', 'tier=gold'];

test.each([
  [60, 1],
  [208, 1],
  [240, 2],
  [340, 3],
  [400, 4],
])('in %s pixels there is room for %s of them', (room, count) => {
  expect(tagsThatFit(tags, room)).toBe(count);
});

test('none are none, and a long one is cut', () => {
  expect([tagsThatFit([], 200), tagsThatFit([`a=${'b'.repeat(500)}`], 100), tagsThatFit(['a', 'b'], 56)]).toEqual([
    0, 1, 2,
  ]);
});
