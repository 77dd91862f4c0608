import { listOperations, type OperationEntry } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { foldPlans } from './folded-plans.ts';

const [example] = (listOperations.example.answer as never as { operations: [OperationEntry] }).operations;
const plan = (id: string, more: Partial<OperationEntry> = {}): OperationEntry => ({
  ...{ ...example, operation_id: id, kind: 'plan', status: 'succeeded', run_id: 'run-1', modules: ['web'] },
  ...{ started_at: 10, finished_at: 12, summary: { ...example.summary, total: 8, changed: 2, unchanged: 6 } },
  ...more,
});

test('folds the plans of a run, and no other operations', () => {
  const apply = plan('4', { kind: 'apply' });
  const rows = foldPlans([plan('1'), plan('2'), plan('3', { run_id: 'run-2' }), apply, plan('5', { run_id: null })]);
  expect(rows.map(({ operation_id, agents }) => [operation_id, agents])).toEqual([
    ['1', 2],
    ['3', undefined],
    ['4', undefined],
    ['5', undefined],
  ]);
});

test('does not fold applies of a run, nor plans without a run', () => {
  const apply = { kind: 'apply' } as const;
  expect(foldPlans([plan('1', apply), plan('2', apply)])).toHaveLength(2);
  expect(foldPlans([plan('1', { run_id: null }), plan('2', { run_id: null })])).toHaveLength(2);
});

test('sums the results of folded plans, and shows their worst status', () => {
  const failed = plan('2', { status: 'failed', error: 'timeout', modules: ['base', 'web'], started_at: 9 });
  const [row] = foldPlans([plan('1'), failed, plan('3', { finished_at: 20 })]);
  expect(row).toMatchObject({
    ...{ status: 'failed', error: 'timeout', agents: 3, modules: ['web', 'base'], started_at: 9, finished_at: 20 },
    summary: { total: 24, changed: 6, unchanged: 18 },
  });
  expect(foldPlans([plan('1'), plan('2', { status: 'running', finished_at: null })])).toMatchObject([
    { status: 'running', finished_at: null },
  ]);
});
