import { expect, test } from 'vitest';
import { endedStale } from './operation-status.ts';

const stale = { plan_id: 'p', status: 'failed', error: 'plan_stale: the machine has changed' } as const;

test('recognizes an apply that ended because its plan was stale', () => {
  expect(endedStale(stale)).toBe(true);
});

test.each([
  ['an operation without a plan', { plan_id: null }],
  ['an operation that succeeded', { status: 'succeeded' }],
  ['another error', { error: 'the operation was cancelled' }],
  ['no error', { error: null }],
] as const)('does not take %s for a stale plan', (_, change) => {
  expect(endedStale({ ...stale, ...change })).toBe(false);
});
