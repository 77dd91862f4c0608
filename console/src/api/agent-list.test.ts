import { expect, test } from 'vitest';
import { firstAgentsSort } from './agent-list.ts';

test.each([
  [null, 'name'],
  ['agent', 'name'],
  ['-agent', '-name'],
  ['state', null],
  ['-cpu', null],
])('requests the first agents in the order of the page: %s', (order, sort) => {
  expect(firstAgentsSort(order)).toBe(sort);
});
