import { expect, test } from 'vitest';
import { driftedSince } from './drifted-since.ts';

const check = (drift_id: string, checked_at: number, status: 'drifted' | 'in_sync' | 'failed', snapshot = 'apply') => ({
  ...{ drift_id, checked_at, status, snapshot_operation_id: snapshot },
});

test('finds the first of consecutive checks with drift, and skips failed checks', () => {
  const checks = [
    check('d', 40, 'drifted'),
    check('c', 30, 'failed'),
    check('b', 20, 'drifted'),
    check('a', 10, 'in_sync'),
  ];
  expect(driftedSince(check('d', 40, 'drifted'), checks)).toEqual({ at: 20, atLeast: false });
});

test('counts drift after an apply as new drift', () => {
  const checks = [check('b', 20, 'drifted'), check('a', 10, 'drifted', 'an earlier apply')];
  expect(driftedSince(check('b', 20, 'drifted'), checks)).toEqual({ at: 20, atLeast: false });
});

test('reports a lower bound for a record that is older than the given checks', () => {
  expect(driftedSince(check('old', 5, 'drifted'), [check('b', 20, 'drifted')])).toEqual({ at: 5, atLeast: true });
});
