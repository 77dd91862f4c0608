import type { Overview } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { agentCount, agentShares, needsOf, syncShares } from './attention.ts';

const quiet: Overview = {
  as_of: 0,
  agents: { pending: 0, rejected: 0, approved: 10, connected: 10, lost: 0 },
  drift: { in_sync: 10, drifted: 0, accepted: 0, failed: 0, unchecked: 0 },
  desired_state: { in_sync: 10, accepted: 0, out_of_sync: 0, never_applied: 0 },
  off: { agents: 0, drifted: 0, drift_failed: 0, apply_failed: 0, unapplied: 0, pending_removals: 0 },
  runs_running: 0,
  operations: { queued: 0, running: 0 },
  secrets_expiring: [],
  unread_notifications: 0,
};
const now = Date.parse('2026-11-22T06:00:00Z');

test('lists nothing for a healthy fleet', () => {
  expect(needsOf(quiet, now)).toEqual([]);
});

test('lists failures before approvals, and approvals before drift', () => {
  const needs = needsOf(
    {
      ...quiet,
      agents: { ...quiet.agents, pending: 1, connected: 7, lost: 2 },
      off: { ...quiet.off, drifted: 3, apply_failed: 1 },
      drift: { ...quiet.drift, failed: 1 },
      desired_state: { ...quiet.desired_state, outdated: 4 },
      secrets_expiring: [
        { name: 'old', expires_at: '2026-11-01T00:00:00Z' },
        { name: 'soon', expires_at: '2026-11-30T00:00:00Z' },
      ],
    },
    now,
  );
  expect(needs.map(({ id }) => id)).toEqual([
    ...['apply_failed', 'offline', 'expired', 'drift_failed', 'pending', 'drifted', 'expiring', 'outdated'],
  ]);
  expect([...new Set(needs.map(({ tone }) => tone))]).toEqual(['bad', 'warn', 'mild']);
  expect(needs.find(({ id }) => id === 'offline')).toMatchObject({ title: '3 agents are offline', tone: 'bad' });
  expect(needs.find(({ id }) => id === 'pending')?.title).toBe('1 agent pending approval');
  expect(needs.find(({ id }) => id === 'drifted')?.title).toBe('3 agents have drifted');
  expect(needs.find(({ id }) => id === 'outdated')).toMatchObject({
    title: '4 agents are outdated',
    repairs: 'outdated',
  });
});

test('counts each agent in only one state', () => {
  const shares = agentShares({ ...quiet, agents: { pending: 2, rejected: 1, approved: 10, connected: 6, lost: 3 } });
  expect(shares.map(({ count }) => count)).toEqual([6, 4, 2, 1]);
});

test('counts all agents in the total', () => {
  const overview = { ...quiet, agents: { pending: 2, rejected: 1, approved: 10, connected: 6, lost: 3 } };
  expect(agentCount(overview)).toBe(13);
  expect(agentShares(overview).reduce((sum, { count }) => sum + count, 0)).toBe(13);
});

test('lists agents that are offline, even before they are lost', () => {
  const agents = { ...quiet.agents, approved: 10_000, connected: 0, lost: 0 };
  expect(needsOf({ ...quiet, agents }, now)).toMatchObject([{ tone: 'bad', title: '10,000 agents are offline' }]);
});

test('gives each sync state its own tone', () => {
  const shares = syncShares({ ...quiet, desired_state: { ...quiet.desired_state, in_sync: 10, outdated: 4 } });
  expect(shares.map(({ id, count }) => [id, count]).slice(0, 3)).toEqual([
    ['in_sync', 6],
    ['out_of_sync', 0],
    ['outdated', 4],
  ]);
  expect(new Set(shares.map(({ tone }) => tone)).size).toBe(5);
});
