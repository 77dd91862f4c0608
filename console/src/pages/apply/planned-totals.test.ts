import { expect, test } from 'vitest';
import type { RunResult } from '../runs/run-groups.ts';
import { totalsOf } from './planned-totals.ts';

const result = (status: RunResult['status'], changed = 0, removed = 0): RunResult => ({
  node_id: `${status} ${changed} ${removed}`,
  name: null,
  operation_id: 'o',
  status,
  error: null,
  summary: { total: 9, unchanged: 9 - changed - removed, changed, removed, failed: 0, skipped: 0 },
});

test('sums the changes and counts the agents without a usable plan', () => {
  expect(
    totalsOf([
      result('succeeded', 2),
      result('succeeded', 1, 3),
      result('succeeded'),
      result('failed', 5),
      result('expired'),
      result('running', 4),
      result('queued'),
    ]),
  ).toEqual({ changed: 3, removed: 3, changedAgents: 2, removedAgents: 1, sameAgents: 1, unplanned: 2, ended: 5 });
});
