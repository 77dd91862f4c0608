import { sql } from 'kysely';
import { defineQuery } from '../query.ts';

/**
 * Channels with deliveries that may be attempted now. Includes channels whose retry time is after `beyond_ms`, because
 * only a wrong clock can have set such a retry time. Unlimited, because there are few channels.
 */
export const dueChannels = defineQuery('deliveries/due channels', (db, p: { now_ms: number; beyond_ms: number }) =>
  db
    .selectFrom('channels')
    .select(['channel_id', 'retry_at_ms'])
    .where((w) => w.or([w('retry_at_ms', '<=', p.now_ms), w('retry_at_ms', '>', p.beyond_ms)]))
    .where((w) =>
      w.exists(
        w
          .selectFrom('deliveries')
          .select('deliveries.place')
          .whereRef('deliveries.channel_id', '=', 'channels.channel_id'),
      ),
    ),
);

/** Deliveries to a channel, each with its event, oldest first. */
export const oldestDeliveries = defineQuery('deliveries/oldest', (db, p: { channel_id: string; limit: number }) =>
  db
    .selectFrom('deliveries')
    .innerJoin('notifications', 'notifications.place', 'deliveries.place')
    .select(['deliveries.delivery_id', 'deliveries.place', 'deliveries.attempts', 'notifications.event'])
    .where('deliveries.channel_id', '=', p.channel_id)
    .orderBy('deliveries.place')
    .limit(p.limit),
);

/**
 * Inserts deliveries from rows of `{delivery_id, channel_id, place}`. Skips deliveries to deleted channels, which would
 * otherwise fail the transaction.
 */
export const insertDeliveries = defineQuery('deliveries/insert', (db, p: { rows: string; created_at_ms: number }, d) =>
  db
    .insertInto('deliveries')
    .columns(['delivery_id', 'channel_id', 'place', 'attempts', 'created_at_ms'])
    .expression((e) =>
      e
        .selectFrom(d.rowsOf(p.rows, { delivery_id: 'text', channel_id: 'text', place: 'integer' }).as('r'))
        .innerJoin('channels', 'channels.channel_id', 'r.channel_id')
        .select((s) => [
          s.ref('r.delivery_id').as('delivery_id'),
          s.ref('r.channel_id').as('channel_id'),
          s.ref('r.place').as('place'),
          sql<number>`0`.as('attempts'),
          d.typed(p.created_at_ms, 'integer').as('created_at_ms'),
        ]),
    ),
);

export const deleteDeliveries = defineQuery('deliveries/delete', (db, p: { delivery_ids: readonly string[] }, d) =>
  db.deleteFrom('deliveries').where(d.isIn('delivery_id', p.delivery_ids)),
);

/** Deliveries created before a time, oldest first. */
export const deliveriesBefore = defineQuery('deliveries/before', (db, p: { created_before: number; limit: number }) =>
  db
    .selectFrom('deliveries')
    .select(['delivery_id', 'channel_id'])
    .where('created_at_ms', '<=', p.created_before)
    .orderBy('created_at_ms')
    .limit(p.limit),
);

export const countAttempt = defineQuery('deliveries/count attempt', (db, p: { delivery_id: string }) =>
  db
    .updateTable('deliveries')
    .set((e) => ({ attempts: e('attempts', '+', 1) }))
    .where('delivery_id', '=', p.delivery_id),
);

/** Changes nothing if the channel was deleted or its configuration has changed. */
export const setChannelHealth = defineQuery(
  'channels/set health',
  (
    db,
    p: {
      channel_id: string;
      sealed: string;
      failures: number;
      retry_at_ms: number;
      failing_since: number | null;
      last_error: string | null;
    },
  ) =>
    db
      .updateTable('channels')
      .set({
        failures: p.failures,
        retry_at_ms: p.retry_at_ms,
        failing_since: p.failing_since,
        last_error: p.last_error,
      })
      .where('channel_id', '=', p.channel_id)
      .where('sealed', '=', p.sealed),
);

/** Records a successful delivery. Changes nothing if the channel was deleted or its configuration has changed. */
export const setChannelDelivered = defineQuery(
  'channels/set delivered',
  (db, p: { channel_id: string; sealed: string; delivered_at: number }) =>
    db
      .updateTable('channels')
      .set({ delivered_at: p.delivered_at, last_error: null })
      .where('channel_id', '=', p.channel_id)
      .where('sealed', '=', p.sealed),
);

/** Records why a test delivery failed. Changes nothing if the channel was deleted or its configuration has changed. */
export const setChannelError = defineQuery(
  'channels/set error',
  (db, p: { channel_id: string; sealed: string; last_error: string }) =>
    db
      .updateTable('channels')
      .set({ last_error: p.last_error })
      .where('channel_id', '=', p.channel_id)
      .where('sealed', '=', p.sealed),
);
