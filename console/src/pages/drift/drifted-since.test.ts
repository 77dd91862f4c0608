import { expect, test } from 'vitest';
import { driftedSince } from './drifted-since.ts';

const check = (drift_id: string, checked_at: number, status: 'drifted' | 'in_sync' | 'failed', snapshot = 'apply') => ({
  ...{ drift_id, checked_at, status, snapshot_operation_id: snapshot },
});

test('the first of those in a row, past checks that failed', () => {
  const checks = [
    check('d', 40, 'drifted'),
    check('c', 30, 'failed'),
    check('b', 20, 'drifted'),
    check('a', 10, 'in_sync'),
  ];
  expect(driftedSince(check('d', 40, 'drifted'), checks)).toEqual({ at: 20, atLeast: false });
});

test('an apply in between begins anew', () => {
  const checks = [check('b', 20, 'drifted'), check('a', 10, 'drifted', 'an earlier apply')];
  expect(driftedSince(check('b', 20, 'drifted'), checks)).toEqual({ at: 20, atLeast: false });
});

test('a record that is too old to be among them is at least as old as itself', () => {
  expect(driftedSince(check('old', 5, 'drifted'), [check('b', 20, 'drifted')])).toEqual({ at: 5, atLeast: true });
});
