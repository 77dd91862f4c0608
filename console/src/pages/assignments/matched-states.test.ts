import { type Agent, listAgents, listReconcile, type OffAgent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { countedStates, withStates } from './matched-states.ts';

const [example] = listAgents.example.answer as never as [Agent];
const [exampleOff] = listReconcile.example.answer as never as [OffAgent];
const agent = (name: string): Agent => ({ ...example, node_id: name, name, status: 'approved' });
const agents = [agent('web-1'), agent('web-2'), agent('web-3'), agent('web-4')];
const sync = { off: new Map([['web-3', { ...exampleOff, node_id: 'web-3' }]]), neverApplied: new Set(['web-2']) };

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
    { state: 'out_of_sync', count: 1 },
    { state: 'never_applied', count: 1 },
    { state: 'in_sync', count: 2 },
  ]);
});

test('returns no counts while the states are loading', () => {
  expect(countedStates(agents, null)).toEqual([]);
});
