import { expect, test } from 'vitest';
import { namesUpTo } from './inspect.ts';

test('reads at most one name more than the limit', () => {
  let read = 0;
  const directory = (size: number) => {
    read = 0;
    return { readSync: () => (read++ < size ? { name: `n${read - 1}` } : null) };
  };
  expect(namesUpTo(directory(3), 3)).toEqual(['n0', 'n1', 'n2']);
  expect(namesUpTo(directory(0), 0)).toEqual([]);
  expect(namesUpTo(directory(1000), 3)).toBeNull();
  expect(read).toBe(4);
});
