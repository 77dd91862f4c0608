import { type AuditEvent, listAudit } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { groupRelated, withDays } from './related-events.ts';

const [example] = listAudit.example.answer.events as [AuditEvent];
const noon = new Date(2026, 10, 20, 12).getTime();
const none = { type: '', id: '', name: '' };

/** Returns an event of the operator ada a number of seconds before noon. */
const event = (seconds: number, event_type: string, more: Partial<AuditEvent> = {}): AuditEvent => ({
  ...example,
  ...{ id: `${event_type} ${seconds}`, event_type, timestamp: new Date(noon - seconds * 1_000).toISOString() },
  ...{ target: none, metadata: {} },
  ...more,
});
const idsOf = (events: readonly AuditEvent[]) => groupRelated(events).map((group) => group.events.map(({ id }) => id));

test('groups the events of a sign-in under the event that describes it', () => {
  const events = [event(1, 'auth.console_opened'), event(2, 'auth.signed_in'), event(40, 'auth.web_login_requested')];
  const [group, ...others] = groupRelated(events);
  expect(others).toEqual([]);
  expect(group?.lead).toBe(events[1]);
  expect(group?.events).toEqual(events);
});

test('groups consecutive events of one actor about one operation, and no other events', () => {
  const metadata = { operation_id: 'x' };
  const requested = event(3, 'state.requested', { metadata });
  const cancelled = event(1, 'state.cancel_requested', { metadata });
  const upload = event(2, 'module.uploaded', { target: { type: 'module', id: 'm', name: 'web' } });
  expect(idsOf([cancelled, requested])).toEqual([[cancelled.id, requested.id]]);
  expect(idsOf([cancelled, upload, requested])).toEqual([[cancelled.id], [upload.id], [requested.id]]);
});

test('groups the events of plans, which change nothing, apart from applies', () => {
  const plan = (at: number, event_type: string, summary: string, id: string) =>
    event(at, event_type, { summary, actor: { type: 'agent', id, name: id } });
  const plans = [
    plan(1, 'run.ended', 'plan of web succeeded on 2 agents', 'system'),
    plan(20, 'state.planned', 'plan on web-1 succeeded', 'web-1'),
    plan(21, 'run.started', 'plan of web started on 2 agents', 'ada'),
  ];
  const applied = plan(22, 'state.applied', 'apply on web-1 succeeded', 'web-1');
  expect(groupRelated([...plans, applied]).map(({ events }) => events.length)).toEqual([3, 1]);
});

test('groups similar events of several agents', () => {
  const by = (id: string, at: number) => event(at, 'state.applied', { actor: { type: 'agent', id, name: id } });
  expect(groupRelated([by('a', 1), by('b', 2), by('c', 3)])).toHaveLength(1);
});

test.each([
  ['of another actor', [event(1, 'auth.renewed', { actor: { ...example.actor, id: 'b' } }), event(2, 'auth.renewed')]],
  ['more than ten seconds earlier', [event(1, 'agent.tagged'), event(12, 'agent.tagged')]],
  [
    'of another operator’s plan',
    [
      event(1, 'run.started', { summary: 'plan of web started', actor: { ...example.actor, id: 'b' } }),
      event(2, 'run.started', { summary: 'plan of db started', metadata: { run_id: 'x' } }),
    ],
  ],
  ['with a warning', [event(1, 'auth.refused', { severity: 'warning' }), event(2, 'auth.signed_in')]],
])('does not group an event %s', (_, events) => {
  expect(groupRelated(events)).toHaveLength(2);
});

test('begins each local day with a heading', () => {
  const day = 86_400;
  const events = [event(60, 'a.a'), event(3_600, 'b.b'), event(day, 'c.c'), event(10 * day, 'd.d')];
  const entries = withDays(groupRelated(events), noon).map((entry) => ('day' in entry ? entry.day : entry.lead.id));
  const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' }).format(noon - 10 * day * 1_000);
  expect(entries).toEqual(['Today', 'a.a 60', 'b.b 3600', 'Yesterday', `c.c ${day}`, date, `d.d ${10 * day}`]);
});
