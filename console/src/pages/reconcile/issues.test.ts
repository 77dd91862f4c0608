import { listReconcile, type OffAgent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { driftText, issuesOf } from './issues.ts';

const [off] = listReconcile.example.answer as never as [OffAgent];
const change = (field: string, from: string | null, to: string | null) => ({ field, from, to });
const file = { type: 'file-unix', identity: '/etc/motd', action: 'update' as const };

test.each([
  [{ ...file, changes: [change('mode', '0666', '0644')] }, '/etc/motd: mode 0666, expected 0644'],
  [
    { ...file, changes: [change('content', 'sha256:1', 'sha256:2'), change('owner', 'ada', 'root')] },
    '/etc/motd: content differs; owner ada, expected root',
  ],
  [{ ...file, action: 'create' as const, changes: [] }, '/etc/motd: missing'],
  [{ ...file, action: 'remove' as const, changes: [] }, '/etc/motd: unexpected'],
  [{ ...file, action: 'none' as const, changes: [change('mode', null, null)] }, '/etc/motd: mode differs'],
  [
    { type: 'sysctl', identity: 'vm.swappiness', action: 'update' as const, changes: [change('value', null, '1')] },
    'sysctl vm.swappiness: value missing, expected 1',
  ],
  [{ type: 'script', identity: 'migrate', action: 'run' as const, changes: [] }, 'script migrate: would run'],
  [{ ...file, changes: [change('note', 'x'.repeat(60), 'y')] }, '/etc/motd: note differs'],
])('describes drift of %j', (example, text) => expect(driftText(example)).toBe(text));

test('names the first resources and counts the others', () => {
  expect(issuesOf({ ...off, unapplied: 5 })).toEqual({
    issues: [
      { reason: 'drifted', name: '/etc/motd', text: '/etc/motd: mode 0666, expected 0644' },
      { reason: 'unapplied', name: 'service nginx', text: 'service nginx: not applied: the unit failed to start' },
      { reason: 'outdated', name: null, text: 'motd: revision 3 applied, newest 4' },
    ],
    more: 4,
  });
});

test('states why an apply failed if it left no resource unapplied', () => {
  const failed_operation = { ...off.failed_operation, status: 'expired', error: 'the agent did not connect' } as never;
  const { outdated: _, ...current } = off;
  const { issues } = issuesOf({ ...current, failed_operation, drift: [], unfinished: [], unapplied: 0 });
  expect(issues.map(({ text }) => text)).toEqual(['Apply expired: the agent did not connect']);
});

test('describes a stale plan in words', () => {
  const failed_operation = { ...off.failed_operation, status: 'failed', error: 'plan_stale: the secret x' } as never;
  const { outdated: _, ...current } = off;
  const { issues } = issuesOf({ ...current, failed_operation, drift: [], unfinished: [], unapplied: 0 });
  expect(issues.map(({ text }) => text)).toEqual(['Apply failed: the plan is stale: the secret x']);
});

test('describes accepted drift only on request, or if nothing else is wrong', () => {
  const text = 'sysctl net.ipv4.ip_forward: value 1, expected 0 (audit assignment hardening)';
  expect(issuesOf(off, true).issues).toEqual([{ reason: 'drifted', name: 'sysctl net.ipv4.ip_forward', text }]);
  const { outdated: _, ...current } = off;
  expect(issuesOf({ ...current, reasons: [] }).issues).toEqual([
    { reason: 'drifted', name: 'sysctl net.ipv4.ip_forward', text },
  ]);
});

test('names the first outdated modules of an agent that is only outdated, and counts the others', () => {
  const clean = { reasons: [], failed_operation: null, unfinished: [], unapplied: 0 };
  const drift = off.drift.filter(({ accepted }) => accepted !== null);
  const examples = [{ module: 'motd', revision: 3, newest: 4 }];
  expect(issuesOf({ ...off, ...clean, drift, outdated: { modules: 2, examples } })).toEqual({
    issues: [{ reason: 'outdated', name: null, text: 'motd: revision 3 applied, newest 4' }],
    more: 1,
  });
});
