import { z } from 'zod';
import type { EventType } from './definition/event-types.ts';
import { listQuery } from './definition/fields.ts';
import { route } from './definition/route.ts';

/** Event types that cause notifications. */
export const notifyingEvents = [
  'agent.pending',
  'agent.lost',
  'agent.returned',
  'agent.cloned',
  'agent.key_rotated',
  'agent.refused',
  'agent.limited',
  'drift.detected',
  'state.failed',
  'run.halted',
  'secret.expiring',
  'disk.low',
  'system.restored',
  'audit.pruned',
  'operator.added',
  'operator.removed',
  'channel.failing',
] as const satisfies readonly EventType[];
export type NotifyingEvent = (typeof notifyingEvents)[number];

/** Maximum number of unread notifications to count. */
export const maxUnreadCounted = 1000;

export const notificationSchema = z
  .strictObject({
    id: z.string(),
    event_id: z.string().describe('id of the event in the audit log'),
    event_type: z.string(),
    severity: z.enum(['info', 'warning', 'critical']),
    summary: z.string(),
    timestamp_ms: z.number().int().describe('Unix milliseconds'),
    read: z.boolean(),
    suppressed: z
      .boolean()
      .describe('whether the event occurred in a maintenance window, so that it was not sent to channels'),
  })
  .meta({ id: 'Notification' });
export type Notification = z.infer<typeof notificationSchema>;
const notificationExample: Notification = {
  id: '01KAGZ9R3E5F6G7H8J9K0M1N2P',
  event_id: '01KAGZ9Q3E5F6G7H8J9K0M1N2P',
  event_type: 'agent.lost',
  severity: 'critical',
  summary: 'agent web-1 is offline',
  timestamp_ms: 1795000100000,
  read: false,
  suppressed: false,
};

export const listNotifications = route({
  id: 'listNotifications',
  method: 'GET',
  path: '/notifications',
  tag: 'Notifications',
  summary: 'List notifications, newest first',
  description: 'Each operator has separate read marks. Notifications from before an operator was added count as read.',
  access: 'operator',
  query: z.strictObject({
    unread: z.enum(['true', 'false']).optional().describe('`true` lists only unread notifications'),
    ...listQuery(50, 500),
  }),
  answers: {
    200: z
      .strictObject({
        notifications: z.array(notificationSchema),
        unread_count: z.number().int().describe(`number of unread notifications, at most ${maxUnreadCounted}`),
      })
      .meta({ id: 'NotificationPage' }),
  },
  errors: [],
  example: { query: { unread: 'true' }, answer: { notifications: [notificationExample], unread_count: 1 } },
});

export const readAllNotifications = route({
  id: 'readAllNotifications',
  method: 'POST',
  path: '/notifications/read-all',
  tag: 'Notifications',
  summary: 'Mark all notifications as read, for the requesting operator',
  access: 'operator',
  answers: { 204: null },
  errors: [],
  example: {},
});

export const readNotification = route({
  id: 'readNotification',
  method: 'POST',
  path: '/notifications/{id}/read',
  tag: 'Notifications',
  summary: 'Mark a notification as read, for the requesting operator',
  access: 'operator',
  params: z.strictObject({ id: z.string() }),
  answers: { 204: null },
  errors: ['notification_not_found'],
  example: { params: { id: notificationExample.id } },
});
