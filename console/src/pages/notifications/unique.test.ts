import { expect, test } from 'vitest';
import { uniqueById } from './unique.ts';

test('what two pages have in common is there once, where it was first', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id }));
  expect(uniqueById([a, b, b, c, a] as { id: string }[])).toEqual([a, b, c]);
});
