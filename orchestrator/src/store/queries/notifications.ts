import type { AuditEvent } from '@muster/protocol/http';
import type { JsonText } from '../json-text.ts';
import { defineQuery, defineVariants } from '../query.ts';

/** @param p.rows rows with all columns of the table, created by `jsonRows` */
export const insertNotifications = defineQuery('notifications/insert', (db, p: { rows: string }, d) =>
  db
    .insertInto('notifications')
    .columns([
      'notification_id',
      'place',
      'event_id',
      'event_type',
      'severity',
      'summary',
      'timestamp_ms',
      'node_id',
      'suppressed',
      'event',
    ])
    .expression((e) =>
      e
        .selectFrom(
          d
            .rowsOf(p.rows, {
              notification_id: 'text',
              place: 'integer',
              event_id: 'text',
              event_type: 'text',
              severity: 'text',
              summary: 'text',
              timestamp_ms: 'integer',
              node_id: 'text',
              suppressed: 'integer',
              event: 'text',
            })
            .as('r'),
        )
        .select((s) => [
          s.ref('r.notification_id').as('notification_id'),
          s.ref('r.place').as('place'),
          s.ref('r.event_id').as('event_id'),
          s.ref('r.event_type').as('event_type'),
          s.ref('r.severity').$castTo<'info' | 'warning' | 'critical'>().as('severity'),
          s.ref('r.summary').as('summary'),
          s.ref('r.timestamp_ms').as('timestamp_ms'),
          s.ref('r.node_id').as('node_id'),
          s.ref('r.suppressed').as('suppressed'),
          s.ref('r.event').$castTo<JsonText<AuditEvent>>().as('event'),
        ]),
    ),
);

/** Notifications, newest first, with the operator's individual read marks. */
export const notifications = defineVariants(
  'notifications/list',
  (db, p: { operator_id: string; read_up_to: number; limit: number; offset: number }, _d, v: { unread: boolean }) => {
    const query = db
      .selectFrom('notifications')
      .leftJoin('notification_reads', (j) =>
        j
          .onRef('notification_reads.place', '=', 'notifications.place')
          .on('notification_reads.operator_id', '=', p.operator_id),
      )
      .select([
        'notifications.notification_id',
        'notifications.place',
        'notifications.event_id',
        'notifications.event_type',
        'notifications.severity',
        'notifications.summary',
        'notifications.timestamp_ms',
        'notifications.suppressed',
        'notification_reads.place as read_place',
      ]);
    return (
      v.unread
        ? query.where('notifications.place', '>', p.read_up_to).where('notification_reads.place', 'is', null)
        : query
    )
      .orderBy('notifications.place', 'desc')
      .limit(p.limit)
      .offset(p.offset);
  },
);

/** The number of unread notifications, counted up to a limit. */
export const unreadCount = defineQuery(
  'notifications/count unread',
  (db, p: { operator_id: string; read_up_to: number; limit: number }) =>
    db
      .selectFrom((e) =>
        e
          .selectFrom('notifications')
          .select('notifications.place')
          .where('notifications.place', '>', p.read_up_to)
          .where((w) =>
            w.not(
              w.exists(
                w
                  .selectFrom('notification_reads')
                  .select('notification_reads.place')
                  .whereRef('notification_reads.place', '=', 'notifications.place')
                  .where('notification_reads.operator_id', '=', p.operator_id),
              ),
            ),
          )
          .orderBy('notifications.place', 'desc')
          .limit(p.limit)
          .as('unread'),
      )
      .select((e) => e.fn.countAll<number>().as('count')),
);

export const notificationById = defineQuery('notifications/by id', (db, p: { notification_id: string }) =>
  db.selectFrom('notifications').select('place').where('notification_id', '=', p.notification_id),
);

export const newestNotification = defineQuery('notifications/newest', (db) =>
  db.selectFrom('notifications').select('place').orderBy('place', 'desc').limit(1),
);

/** The newest notification that exceeds the `newest` notifications to retain. */
export const notificationBeyond = defineQuery('notifications/beyond', (db, p: { newest: number }) =>
  db.selectFrom('notifications').select('place').orderBy('place', 'desc').limit(1).offset(p.newest),
);

export const notificationBefore = defineQuery('notifications/before', (db, p: { happened_before: number }) =>
  db
    .selectFrom('notifications')
    .select('place')
    .where('timestamp_ms', '<', p.happened_before)
    .orderBy('timestamp_ms', 'desc')
    .limit(1),
);

export const notificationsSince = defineQuery(
  'notifications/since',
  (db, p: { types: readonly string[]; happened_after: number }, d) =>
    db
      .selectFrom('notifications')
      .select(['event_type', 'node_id', 'timestamp_ms'])
      .where('timestamp_ms', '>', p.happened_after)
      .where(d.isIn('event_type', p.types)),
);

/** Notifications up to a position that have no deliveries, oldest first. */
export const prunableNotifications = defineQuery('notifications/prunable', (db, p: { up_to: number; limit: number }) =>
  db
    .selectFrom('notifications')
    .select('notifications.place')
    .where('notifications.place', '<=', p.up_to)
    .where((w) =>
      w.not(
        w.exists(
          w
            .selectFrom('deliveries')
            .select('deliveries.place')
            .whereRef('deliveries.place', '=', 'notifications.place'),
        ),
      ),
    )
    .orderBy('notifications.place')
    .limit(p.limit),
);

export const deleteNotifications = defineQuery('notifications/delete', (db, p: { places: readonly number[] }, d) =>
  db.deleteFrom('notifications').where(d.isIn('place', p.places, 'integer')),
);

/** The position up to which an operator has read all notifications. */
export const readUpTo = defineQuery('notifications/read up to', (db, p: { operator_id: string }) =>
  db.selectFrom('notification_watermarks').select('place').where('operator_id', '=', p.operator_id),
);

/** Never decreases the position. */
export const raiseReadUpTo = defineQuery(
  'notifications/raise read up to',
  (db, p: { operator_id: string; place: number }) =>
    db
      .insertInto('notification_watermarks')
      .values({ operator_id: p.operator_id, place: p.place })
      .onConflict((c) =>
        c
          .column('operator_id')
          .doUpdateSet({ place: (e) => e.ref('excluded.place') })
          .whereRef('notification_watermarks.place', '<', 'excluded.place'),
      ),
);

export const insertRead = defineQuery('notifications/insert read', (db, p: { operator_id: string; place: number }) =>
  db
    .insertInto('notification_reads')
    .values({ operator_id: p.operator_id, place: p.place })
    .onConflict((c) => c.columns(['operator_id', 'place']).doNothing()),
);

/** Deletes the operator's individual read marks up to a position. */
export const deleteReadsUpTo = defineQuery(
  'notifications/delete reads up to',
  (db, p: { operator_id: string; place: number }) =>
    db.deleteFrom('notification_reads').where('operator_id', '=', p.operator_id).where('place', '<=', p.place),
);

export const deleteReadsOf = defineQuery('notifications/delete reads of', (db, p: { operator_id: string }) =>
  db.deleteFrom('notification_reads').where('operator_id', '=', p.operator_id),
);

export const deleteReadUpTo = defineQuery('notifications/delete read up to', (db, p: { operator_id: string }) =>
  db.deleteFrom('notification_watermarks').where('operator_id', '=', p.operator_id),
);
