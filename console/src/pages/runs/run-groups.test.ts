import type { ResourceResult, Summary } from '@muster/protocol';
import type { Operation } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { countsOf, firstToCompare, groupResults, haltReason, type RunResult } from './run-groups.ts';

const summary = (over: Partial<Summary> = {}): Summary => ({
  ...{ total: 3, unchanged: 3, changed: 0, removed: 0, failed: 0, skipped: 0 },
  ...over,
});
const result = (name: string, over: Partial<RunResult> = {}): RunResult => ({
  node_id: `id-${name}`,
  name,
  operation_id: `op-${name}`,
  status: 'succeeded',
  error: null,
  summary: summary(),
  ...over,
});
const changed = (name: string) => result(name, { summary: summary({ changed: 1, unchanged: 2 }) });

const resource = (over: Partial<ResourceResult>): ResourceResult => ({
  ...{ module: 'web', id: null, type: 'file', identity: '/etc/x', action: 'update', status: 'would_change' },
  ...{ changes: [], diff: '+a', triggered_by: [], corrective: false, message: null, duration_ms: 1, sensitive: false },
  ...(over as object),
});
const operation = (over: Partial<Operation>) =>
  ({ status: 'succeeded', error: null, resources: [resource({})], ...over }) as Operation;

test('groups agents with the same changes, failures first, then by size', () => {
  const results = [
    changed('a'),
    changed('b'),
    changed('c'),
    result('same-1'),
    result('same-2', { summary: summary({ total: 9, unchanged: 9 }) }),
    result('away', { status: 'failed', operation_id: null, summary: null, error: 'the agent is offline' }),
    result('waits', { status: 'queued', operation_id: null, summary: null }),
  ];
  const likeness = new Map([
    ['op-a', 'x'],
    ['op-b', 'y'],
    ['op-c', 'x'],
  ]);
  const groups = groupResults(results, likeness, new Map([['x', operation({})]]));
  expect(groups.map((group) => [group.outcome, group.results.map(({ name }) => name)])).toEqual([
    ['failed', ['away']],
    ['changed', ['a', 'c']],
    ['changed', ['b']],
    ['same', ['same-1', 'same-2']],
  ]);
});

test('counts agents with removals separately, and lists them before agents with other changes', () => {
  const results = [changed('a'), result('b', { summary: summary({ removed: 1 }) }), result('c')];
  expect(countsOf(results)).toMatchObject({ removes: 1, changed: 1, same: 1 });
  expect(groupResults(results, new Map(), new Map()).map(({ outcome }) => outcome)).toEqual([
    'removes',
    'changed',
    'same',
  ]);
});

test('adds uncompared agents to the only group that they can belong to', () => {
  const results = [changed('a'), changed('b'), changed('c')];
  const [only, ...rest] = groupResults(results, new Map([['op-a', 'x']]), new Map());
  expect(rest).toEqual([]);
  expect(only?.results.length).toBe(3);
  expect(only?.uncompared.map(({ name }) => name)).toEqual(['b', 'c']);
});

test('keeps uncompared agents apart if they can belong to two groups', () => {
  const likeness = new Map([
    ['op-a', 'x'],
    ['op-b', 'y'],
  ]);
  const groups = groupResults([changed('a'), changed('b'), changed('c')], likeness, new Map());
  expect(groups.map(({ results, uncompared }) => [results.length, uncompared.length])).toEqual([
    [1, 0],
    [1, 0],
    [1, 1],
  ]);
});

test('chooses operations to compare from every group of 10,000 agents', () => {
  const many = Array.from({ length: 10_000 }, (_, at) => changed(`many-${at}`));
  const odd = result('odd', { summary: summary({ changed: 2, unchanged: 1 }) });
  const ids = firstToCompare([...many, odd, result('same')], 60);
  expect(ids).toHaveLength(60);
  expect(ids).toContain('op-odd');
  expect(ids).not.toContain('op-same');
});

test('distinguishes skipped from canceled agents', () => {
  const reason = 'not tried: the run was halted, because a canary did not succeed';
  const results = [
    result('late', { status: 'cancelled', operation_id: null, summary: null, error: reason }),
    result('stopped', { status: 'cancelled' }),
    changed('done'),
  ];
  expect(countsOf(results)).toMatchObject({ untried: 1, cancelled: 1, changed: 1, same: 0 });
  expect(haltReason(results)).toBe('a canary did not succeed');
  expect(haltReason([changed('done')])).toBeNull();
});
