import type { Notification } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { eventLabel, eventsLabel } from './event-labels.ts';
import { groupNotifications } from './notification-groups.ts';

const hour = 3_600_000;
const notification = (id: string, event_type: string, more: Partial<Notification> = {}): Notification => ({
  ...{ id, event_id: id, event_type, severity: 'info', summary: id, timestamp_ms: 100 * hour, read: false },
  ...{ suppressed: false, ...more },
});
const idsOf = (notifications: readonly Notification[]) =>
  groupNotifications(notifications).map((group) => group.notifications.map(({ id }) => id).join(' '));

test('groups adjacent notifications of one type', () => {
  expect(
    idsOf([
      ...[notification('1', 'agent.pending'), notification('2', 'agent.pending'), notification('3', 'agent.lost')],
      notification('4', 'agent.pending'),
    ]),
  ).toEqual(['1 2', '3', '4']);
});

test('does not group notifications that are read, muted by a window, or more than an hour older', () => {
  const first = notification('1', 'agent.lost');
  for (const more of [{ read: true }, { suppressed: true }, { timestamp_ms: 98 * hour }])
    expect(idsOf([first, notification('2', 'agent.lost', more)])).toEqual(['1', '2']);
});

test('labels event types in words', () => {
  expect(eventLabel('agent.lost')).toBe('Agent offline');
  expect(eventsLabel('agent.pending', 5)).toBe('5 enrollment requests');
  expect([eventLabel('agent.new_type'), eventsLabel('agent.new_type', 2)]).toEqual([
    'agent.new_type',
    '2 × agent.new_type',
  ]);
});
