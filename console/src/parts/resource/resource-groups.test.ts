import type { ResourceResult } from '@muster/protocol';
import { expect, test } from 'vitest';
import {
  groupsByModule,
  keyedResults,
  openAtFirst,
  outcomeOf,
  piecesOf,
  resultAt,
  shownResults,
  summaryParts,
  triggerText,
} from './resource-groups.ts';

const result = (over: Partial<ResourceResult>): ResourceResult => ({
  module: 'web',
  id: null,
  type: 'file',
  identity: '/etc/x',
  action: 'none',
  status: 'unchanged',
  changes: [],
  diff: null,
  triggered_by: [],
  corrective: false,
  message: null,
  duration_ms: 0,
  sensitive: false,
  ...over,
});

const mixed = [
  result({ identity: 'a' }),
  result({ identity: 'b' }),
  result({ identity: 'c', status: 'changed', action: 'update', diff: '@@ -1 +1 @@\n-a\n+b\n' }),
  result({ module: 'db', identity: 'd', status: 'failed', message: 'no such user' }),
  result({ identity: 'e' }),
];

test('assigns different keys to two resources with the same identity in a module', () => {
  const keyed = keyedResults([
    result({ type: 'package', identity: 'nginx' }),
    result({ type: 'service', identity: 'nginx' }),
    result({ module: 'db', identity: 'nginx' }),
  ]);
  expect(keyed.map(({ key }) => key)).toEqual(['web/package:nginx', 'web/service:nginx', 'db/nginx']);
  expect(resultAt(keyed, 'web/service:nginx')?.result.type).toBe('service');
  expect(resultAt(keyed, 'web/nginx')?.result.type).toBe('package');
  expect(resultAt(keyed, 'web/none')).toBeNull();
});

test('groups modules in the order of their first resource', () => {
  expect(groupsByModule(keyedResults(mixed)).map(({ module, results }) => [module, results.length])).toEqual([
    ['web', 4],
    ['db', 1],
  ]);
});

test('includes failures if only changes are shown', () => {
  const keyed = keyedResults(mixed);
  const shown = (...args: ['all' | 'changed' | 'failed', string]) =>
    shownResults(keyed, ...args).map((each) => each.result.identity);
  expect(shown('changed', '')).toEqual(['c', 'd']);
  expect(shown('failed', '')).toEqual(['d']);
  expect(shown('all', ' D ')).toEqual(['d']);
});

test('folds consecutive unchanged results, except the one that the URL points to', () => {
  const keyed = keyedResults(mixed.filter(({ module }) => module === 'web'));
  const shape = (linked: string | null) =>
    piecesOf(keyed, linked).map((piece) => (piece.kind === 'one' ? piece.each.key : piece.results.length));
  expect(shape(null)).toEqual([2, 'web/c', 1]);
  expect(shape('web/a')).toEqual(['web/a', 1, 'web/c', 1]);
});

test('does not fold a resource that was skipped with a message', () => {
  const keyed = keyedResults([result({ status: 'skipped', message: 'requires file:/etc/x, which failed' })]);
  expect(piecesOf(keyed, null)[0]?.kind).toBe('one');
});

test('initially expands failures, and changes up to the limit', () => {
  const long = `@@ -1 +1 @@\n${'+x\n'.repeat(900)}`;
  const keyed = keyedResults([
    result({ identity: '1', status: 'changed', diff: long }),
    result({ identity: '2', status: 'changed', diff: long }),
    result({ identity: '3', status: 'failed' }),
    result({ identity: '4' }),
  ]);
  expect([...openAtFirst(keyed)]).toEqual(['web/1', 'web/3']);
});

test.each([
  ['changed', 'create', 'apply', 'created'],
  ['would_change', 'create', 'plan', 'would create'],
  ['would_change', 'create', 'drift', 'missing'],
  ['would_change', 'remove', 'drift', 'unexpected'],
  ['failed', 'restart', 'apply', 'restart failed'],
  ['failed', 'none', 'apply', 'failed'],
  ['unknown', 'run', 'apply', 'may have run partially'],
] as const)('describes %s %s in %s as %s', (status, action, resultKind, word) => {
  expect(outcomeOf(result({ status, action }), resultKind).word).toBe(word);
});

test('describes a trigger by type and identity, or by its id if it has no result', () => {
  const all = [result({ id: 'conf' }), result({ id: 'svc', type: 'service', identity: 'x' })];
  expect(triggerText('conf', all[1] as ResourceResult, all)).toBe('file /etc/x');
  expect(triggerText('gone', all[1] as ResourceResult, all)).toBe('gone');
});

test('gives removals in a plan the same tone as failures, like the rows of the plan', () => {
  const summary = { total: 2, unchanged: 0, changed: 1, removed: 1, failed: 0, skipped: 0 };
  const tones = (kind: 'plan' | 'apply') => summaryParts(summary, kind).map(({ tone }) => tone);
  expect([tones('plan'), tones('apply')]).toEqual([
    ['warn', 'bad'],
    ['good', 'warn'],
  ]);
});

test.each(['update', 'create', 'restart', 'remove'] as const)(
  'gives %s in an apply the tone of its count',
  (action) => {
    const isRemoval = action === 'remove';
    const counts = { changed: isRemoval ? 0 : 1, removed: isRemoval ? 1 : 0 };
    const [count] = summaryParts({ total: 1, unchanged: 0, failed: 0, skipped: 0, ...counts }, 'apply');
    expect(outcomeOf(result({ action, status: 'changed' }), 'apply').tone).toBe(count?.tone);
  },
);

test('omits zero counts from a summary', () => {
  const summary = { total: 5, unchanged: 3, changed: 1, removed: 0, failed: 1, skipped: 0 };
  expect(summaryParts(summary, 'plan').map(({ text }) => text)).toEqual(['1 failed', '1 to change', '3 unchanged']);
});
