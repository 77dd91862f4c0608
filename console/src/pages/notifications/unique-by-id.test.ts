import { expect, test } from 'vitest';
import { uniqueById } from './unique-by-id.ts';

test('keeps the first of several items with the same id', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id }));
  expect(uniqueById([a, b, b, c, a] as { id: string }[])).toEqual([a, b, c]);
});
