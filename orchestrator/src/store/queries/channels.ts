import type { ChannelType } from '@muster/protocol/http';
import { defineQuery, defineVariants } from '../query.ts';

export const channels = defineQuery('channels/list', (db, p: { limit: number }) =>
  db.selectFrom('channels').selectAll().orderBy('channel_id').limit(p.limit),
);

export const channelById = defineQuery('channels/by id', (db, p: { channel_id: string }) =>
  db.selectFrom('channels').selectAll().where('channel_id', '=', p.channel_id),
);

export const channelIds = defineQuery('channels/ids', (db) => db.selectFrom('channels').select('channel_id'));

/** For preconditions: returns a row if more than `number` channels exist. */
export const channelNumber = defineQuery('channels/number', (db, p: { number: number }) =>
  db.selectFrom('channels').select('channel_id').orderBy('channel_id').limit(1).offset(p.number),
);

export const insertChannel = defineQuery(
  'channels/insert',
  (
    db,
    p: {
      channel_id: string;
      name: string;
      channel_type: ChannelType;
      key_id: string;
      sealed: string;
      created_at: number;
      created_by: string;
    },
  ) =>
    db.insertInto('channels').values({
      channel_id: p.channel_id,
      name: p.name,
      channel_type: p.channel_type,
      key_id: p.key_id,
      sealed: p.sealed,
      created_at: p.created_at,
      created_by: p.created_by,
      failures: 0,
      retry_at_ms: 0,
      failing_since: null,
      delivered_at: null,
      last_error: null,
    }),
);

/** A new configuration resets the failures, so that deliveries are attempted immediately. */
export const setChannel = defineVariants(
  'channels/set',
  (
    db,
    p: { channel_id: string; name: string; key_id: string; sealed: string },
    _d,
    v: { name: boolean; config: boolean },
  ) =>
    db
      .updateTable('channels')
      .set({
        ...(v.name ? { name: p.name } : {}),
        ...(v.config ? { key_id: p.key_id, sealed: p.sealed, failures: 0, retry_at_ms: 0, last_error: null } : {}),
      })
      .where('channel_id', '=', p.channel_id),
);

/** Deletes a channel and its deliveries. */
export const deleteChannel = defineQuery('channels/delete', (db, p: { channel_id: string }) =>
  db.deleteFrom('channels').where('channel_id', '=', p.channel_id),
);

export const anyChannel = defineQuery('channels/any', (db) => db.selectFrom('channels').select('channel_id').limit(1));

/** Channels whose configuration is encrypted with another key. Unlimited, because there are few channels. */
export const channelsToReseal = defineQuery('channels/to reseal', (db, p: { key_id: string }) =>
  db.selectFrom('channels').select(['channel_id', 'name', 'key_id', 'sealed']).where('key_id', '!=', p.key_id),
);

/**
 * Replaces the configuration with the same configuration, encrypted with another key. Changes nothing if the
 * configuration has changed since it was read.
 */
export const resealChannel = defineQuery(
  'channels/reseal',
  (db, p: { channel_id: string; former: string; key_id: string; sealed: string }) =>
    db
      .updateTable('channels')
      .set({ key_id: p.key_id, sealed: p.sealed })
      .where('channel_id', '=', p.channel_id)
      .where('sealed', '=', p.former),
);

/** Returns a row if any configuration is encrypted with this key. */
export const channelUnderKey = defineQuery('channels/under key', (db, p: { key_id: string }) =>
  db.selectFrom('channels').select('channel_id').where('key_id', '=', p.key_id).limit(1),
);

/** A channel whose configuration is not encrypted with any of the given keys. */
export const channelUnderOther = defineQuery('channels/under other key', (db, p: { key_ids: string[] }, d) =>
  db.selectFrom('channels').select('key_id').where(d.isNotIn('key_id', p.key_ids)).limit(1),
);
