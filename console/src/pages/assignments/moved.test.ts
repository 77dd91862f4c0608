import { expect, test } from 'vitest';
import { moved } from './moved.ts';

test.each([
  [0, 2, 'bca'],
  [2, 0, 'cab'],
  [1, 1, 'abc'],
  [2, 9, 'abc'],
  [0, -1, 'abc'],
  [7, 0, 'abc'],
])('from %i to %i', (from, to, order) => expect(moved(['a', 'b', 'c'], from, to).join('')).toBe(order));
