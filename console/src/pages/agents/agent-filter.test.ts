import type { Agent, OffAgent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import type { FleetSync } from '../reconcile/agent-sync.ts';
import { type AgentTab, chooseAgents, indexSearch, splitSearch } from './agent-filter.ts';

const agent = (node_id: string, parts: Partial<Agent> = {}): Agent => ({
  node_id,
  name: node_id,
  status: 'approved',
  agent_version: '0.1.0',
  attributes: { distro: 'debian' },
  tags: {},
  connected: true,
  connected_at: 0,
  updated_at: 0,
  last_seen_at: 0,
  initial_hostname: `${node_id}.example.net`,
  initial_ip: '192.0.2.1',
  pin_source: 'flag',
  ...parts,
});

const databases = ['db-1', 'db-2', 'db-3'].map((id) => agent(id));
const fleet = [
  agent('web-1', { tags: { role: 'web' } }),
  agent('web-2', { tags: { role: 'web' }, connected: false }),
  agent('new', { status: 'pending', name: null, initial_ip: '198.51.100.9' }),
  ...databases,
  agent('gone', { status: 'rejected', attributes: { hostname: 'Former' } }),
];
const entry = { reasons: [], drift: [] } as unknown as OffAgent;
const sync: FleetSync = {
  off: new Map([
    ['web-1', { ...entry, reasons: ['drifted'] }],
    ['web-2', { ...entry, outdated: { modules: 1, examples: [] } }],
    ['db-1', { ...entry, drift: [{}] } as OffAgent],
  ]),
  neverApplied: new Set(['db-2', 'new']),
};
const chosen = (choice: Partial<{ search: string; selector: string; tab: AgentTab }>) =>
  chooseAgents(fleet, { search: '', selector: '', tab: 'all', ...choice }, sync);
const ids = (choice: Parameters<typeof chosen>[0]) => chosen(choice).rows.map(({ node_id }) => node_id);

test('finds agents that contain every word in their name, hostname, id, address, or tags', () => {
  expect(ids({ search: 'WEB 2' })).toEqual(['web-1', 'web-2', 'new', 'gone'].filter((id) => id.startsWith('web')));
  expect(ids({ search: 'web-2' })).toEqual(['web-2']);
  expect(ids({ search: '198.51' })).toEqual(['new']);
  expect(ids({ search: 'role=web' })).toEqual(['web-1', 'web-2']);
  expect(ids({ search: 'former' })).toEqual(['gone']);
});

test.each([
  ['web-1', 'web-1', ''],
  ['paris role=web', 'paris', '      role=web'],
  ['site in (paris, berlin) db', 'db', 'site in (paris, berlin)'],
  ['!legacy note="two words" x', 'x', '!legacy note="two words"'],
  ['tier notin (gold', '', 'tier notin (gold'],
  ['role=', '', 'role='],
  ['fe80::1 a!=b', 'fe80::1', '        a!=b'],
  ['in (a)', 'in (a)', ''],
])('splits %j into words and a selector', (text, search, selector) => {
  expect(splitSearch(text)).toEqual({ search, selector });
});

test('filters by selector, and ignores an invalid one', () => {
  expect(ids({ selector: 'role=web attr.distro=debian' })).toEqual(['web-1', 'web-2']);
  expect(ids({ selector: 'role=' })).toHaveLength(7);
});

test('filters by tab, and counts the agents on each tab', () => {
  expect(ids({ tab: 'offline' })).toEqual(['web-2']);
  expect(ids({ tab: 'off' })).toEqual(['web-1']);
  expect(ids({ tab: 'outdated' })).toEqual(['web-2']);
  expect(ids({ tab: 'in_sync' })).toEqual(['db-3']);
  expect(ids({ tab: 'never_applied' })).toEqual(['db-2']);
  expect(chooseAgents(fleet, { search: '', selector: '', tab: 'in_sync' }, null).rows).toEqual([]);
  expect(chosen({ search: 'web' }).counts).toEqual({
    all: 2,
    approved: 2,
    connected: 1,
    offline: 1,
    in_sync: 0,
    off: 1,
    outdated: 1,
    never_applied: 0,
    pending: 0,
    rejected: 0,
  });
});

test('indexes 500 agents in each step', () => {
  const steps = indexSearch(Array.from({ length: 1_200 }, (_, index) => agent(`web-${index}`)));
  expect([steps.next().done, steps.next().done, steps.next().done]).toEqual([false, false, true]);
});
