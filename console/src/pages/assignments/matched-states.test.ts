import { type Agent, listAgents, listReconcile, type OffAgent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { countedFindings, urgencyOf, withFindings } from './matched-states.ts';

const [example] = listAgents.example.answer as never as [Agent];
const [exampleOff] = listReconcile.example.answer as never as [OffAgent];
const agent = (name: string): Agent => ({ ...example, node_id: name, name, status: 'approved' });
const agents = [agent('web-1'), agent('web-2'), agent('web-3'), agent('web-4')];
const off = (name: string, reasons: OffAgent['reasons']) => [name, { ...exampleOff, node_id: name, reasons }] as const;
const sync = { off: new Map([off('web-3', ['drifted'])]), neverApplied: new Set(['web-2']) };

const failing = { ...sync, off: new Map([off('web-3', ['drifted']), off('web-4', ['apply_failed', 'drifted'])]) };

test('lists agents by their worst finding, the most urgent first, and otherwise keeps the order', () => {
  const more = [...agents, agent('web-0')];
  expect(withFindings(more, failing).map(({ agent: { name }, finding }) => [name, finding])).toEqual([
    ['web-4', 'apply_failed'],
    ['web-3', 'drifted'],
    ['web-2', 'never_applied'],
    ['web-1', 'in_sync'],
    ['web-0', 'in_sync'],
  ]);
});

test('counts agents by finding, without the findings that no agent has', () => {
  expect(countedFindings(agents, failing)).toEqual([
    { finding: 'apply_failed', count: 1 },
    { finding: 'drifted', count: 1 },
    { finding: 'never_applied', count: 1 },
    { finding: 'in_sync', count: 1 },
  ]);
});

test('returns no counts while the states are loading', () => {
  expect(countedFindings(agents, null)).toEqual([]);
});

test('sorts by the worst finding, and then by the number of its agents', () => {
  const counts = (finding: 'drifted' | 'in_sync', count: number) => [{ finding, count }] as const;
  const keys = [counts('in_sync', 9), counts('drifted', 1), counts('drifted', 2)].map(urgencyOf);
  expect(keys.toSorted((a, b) => Number(a) - Number(b))).toEqual([keys[2], keys[1], keys[0]]);
  expect(urgencyOf([])).toBeNull();
});
