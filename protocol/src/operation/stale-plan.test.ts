import { expect, test } from 'vitest';
import { endedStale, stalePlanError, stalePlanReason } from './stale-plan.ts';

const stale = { plan_id: 'p', status: 'failed', error: 'plan_stale: the machine has changed' } as const;

test('recognizes an apply that ended because its plan was stale', () => {
  expect(endedStale(stale)).toBe(true);
});

test.each([
  ['an operation without a plan', { plan_id: null }],
  ['an operation that succeeded', { status: 'succeeded' }],
  ['another error', { error: 'the operation was canceled' }],
  ['an error that has only the code', { error: 'plan_stale' }],
  ['no error', { error: null }],
] as const)('does not treat %s as a stale plan', (_, change) => {
  expect(endedStale({ ...stale, ...change })).toBe(false);
});

test.each(['the machine has changed', 'plan_stale: again', ''])('reads back the reason %j', (reason) => {
  expect(stalePlanReason(stalePlanError(reason))).toBe(reason);
});

test.each([null, '', 'plan_stale', 'plan_stale:x', 'Plan_stale: x', ' plan_stale: x', 'the plan_stale: x'])(
  'returns no reason for an error other than a stale plan: %j',
  (error) => {
    expect(stalePlanReason(error)).toBe(null);
  },
);

test('writes the error in the format of earlier releases', () => {
  expect(stalePlanError('the machine has changed')).toBe('plan_stale: the machine has changed');
});
