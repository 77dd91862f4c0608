import { type Agent, listAgents, listReconcile, type OffAgent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { countedStates, withStates } from './matched-states.ts';

const [example] = listAgents.example.answer as never as [Agent];
const [exampleOff] = listReconcile.example.answer as never as [OffAgent];
const agent = (name: string): Agent => ({ ...example, node_id: name, name, status: 'approved' });
const agents = [agent('web-1'), agent('web-2'), agent('web-3'), agent('web-4')];
const off = (name: string, reasons: OffAgent['reasons']) => [name, { ...exampleOff, node_id: name, reasons }] as const;
const sync = { off: new Map([off('web-3', ['drifted'])]), neverApplied: new Set(['web-2']) };

test('lists agents that are out of sync before all others, and otherwise keeps the order', () => {
  expect(withStates(agents, sync).map(({ agent: { name }, state }) => [name, state])).toEqual([
    ['web-3', 'out_of_sync'],
    ['web-2', 'never_applied'],
    ['web-1', 'in_sync'],
    ['web-4', 'in_sync'],
  ]);
});

test('counts agents by state, without the states that no agent has', () => {
  expect(countedStates(agents, sync)).toEqual([
    { state: 'out_of_sync', count: 1, tone: 'warn' },
    { state: 'never_applied', count: 1, tone: 'faint' },
    { state: 'in_sync', count: 2, tone: 'good' },
  ]);
});

test('lists agents that failed first, and gives their tone to the state', () => {
  const failing = { ...sync, off: new Map([off('web-3', ['drifted']), off('web-4', ['drifted', 'apply_failed'])]) };
  expect(withStates(agents, failing).map(({ agent: { name }, tone }) => [name, tone])).toEqual([
    ['web-4', 'bad'],
    ['web-3', 'warn'],
    ['web-2', 'faint'],
    ['web-1', 'good'],
  ]);
  expect(countedStates(agents, failing)[0]).toEqual({ state: 'out_of_sync', count: 2, tone: 'bad' });
});

test('returns no counts while the states are loading', () => {
  expect(countedStates(agents, null)).toEqual([]);
});
