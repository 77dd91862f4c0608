import type { AuditEvent } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { groupEvents } from './event-groups.ts';

const start = Date.parse('2026-11-22T06:00:00Z');
const admin = { type: 'operator', id: '1', name: 'admin' } as AuditEvent['actor'];
let number = 0;
/** @param seconds before the newest event */
const event = (event_type: string, seconds: number, more: Partial<AuditEvent> = {}): AuditEvent =>
  ({
    ...{ id: String(++number), event_type, severity: 'info', actor: admin, summary: event_type, metadata: {} },
    ...{ target: { type: 'agent', id: 'a', name: 'a' }, timestamp: new Date(start - seconds * 1000).toISOString() },
    ...more,
  }) as AuditEvent;
const shown = (events: readonly AuditEvent[]) =>
  groupEvents(events).map(({ event, count }) => [event.event_type, count] as const);

test('groups the events of a run, even if they alternate with others', () => {
  const agent = (id: string) => ({ actor: { type: 'agent', id, name: id } as AuditEvent['actor'] });
  expect(
    shown([
      ...[event('state.planned', 0, agent('a')), event('state.requested', 1), event('state.planned', 2, agent('b'))],
      ...[event('state.requested', 3), event('run.started', 4)],
    ]),
  ).toEqual([
    ['state.planned', 2],
    ['state.requested', 2],
    ['run.started', 1],
  ]);
});

test('shows a sign-in as one line', () => {
  expect(shown([event('auth.renewed', 0), event('auth.signed_in', 1), event('auth.web_login_requested', 2)])).toEqual([
    ['auth.signed_in', 3],
  ]);
});

test('shows later sign-ins of an operator in the same line', () => {
  expect(shown([event('auth.signed_in', 0), event('run.started', 10), event('auth.signed_in', 3_600)])).toEqual([
    ['auth.signed_in', 2],
    ['run.started', 1],
  ]);
});

test('does not group events of another operator, critical events, or much earlier events', () => {
  const other = { actor: { type: 'operator', id: '2', name: 'sam' } as AuditEvent['actor'] };
  expect(shown([event('module.updated', 0), event('module.updated', 1, other)])).toHaveLength(2);
  expect(
    shown([event('agent.lost', 0, { severity: 'critical' }), event('agent.lost', 1, { severity: 'critical' })]),
  ).toHaveLength(2);
  expect(shown([event('module.updated', 0), event('module.updated', 61)])).toHaveLength(2);
});
