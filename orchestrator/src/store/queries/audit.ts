import { bytesOf } from '../page-bytes.ts';
import { defineQuery, defineVariants } from '../query.ts';
import type { AuditEventsTable } from '../schema.ts';
import { liveSessionRow } from './sessions.ts';

/** An event without its sequence number and its position in the chain. */
type AuditRow = Omit<AuditEventsTable, 'seq' | 'place' | 'hash'>;

export const insertAuditEvent = defineQuery('audit/insert', (db, p: { [K in keyof AuditRow]: AuditRow[K] }) =>
  db.insertInto('audit_events').values({
    id: p.id,
    event_type: p.event_type,
    category: p.category,
    severity: p.severity,
    timestamp_ms: p.timestamp_ms,
    actor_type: p.actor_type,
    actor_id: p.actor_id,
    actor_name: p.actor_name,
    target_type: p.target_type,
    target_id: p.target_id,
    target_name: p.target_name,
    summary: p.summary,
    metadata: p.metadata,
  }),
);

/** Inserts an event as {@link insertAuditEvent} does, but only if the sign-in session is live. */
export const insertAuditEventInSession = defineQuery(
  'audit/insert in session',
  (db, p: { [K in keyof AuditRow]: AuditRow[K] } & { session: string; now: number }, d) =>
    db
      .insertInto('audit_events')
      .columns([
        'id',
        'event_type',
        'category',
        'severity',
        'timestamp_ms',
        'actor_type',
        'actor_id',
        'actor_name',
        'target_type',
        'target_id',
        'target_name',
        'summary',
        'metadata',
      ])
      .expression(
        liveSessionRow(db, p, d).select([
          d.typed(p.id, 'text').as('id'),
          d.typed(p.event_type, 'text').as('event_type'),
          d.typed(p.category, 'text').as('category'),
          d.typed(p.severity, 'text').as('severity'),
          d.typed(p.timestamp_ms, 'integer').as('timestamp_ms'),
          d.typed(p.actor_type, 'text').as('actor_type'),
          d.typed(p.actor_id, 'text').as('actor_id'),
          d.typed(p.actor_name, 'text').as('actor_name'),
          d.typed(p.target_type, 'text').as('target_type'),
          d.typed(p.target_id, 'text').as('target_id'),
          d.typed(p.target_name, 'text').as('target_name'),
          d.typed(p.summary, 'text').as('summary'),
          d.typed(p.metadata, 'text').as('metadata'),
        ]) as never,
      ),
);

/**
 * Keys and sizes of events, newest first, by time and sequence number. `below_ms` and `below_seq` are the keys of the
 * last event on the previous page.
 */
export const auditKeys = defineVariants(
  'audit/list',
  (
    db,
    p: {
      agent: string;
      operator: string;
      event_type: string;
      category: string;
      after: number;
      before: number;
      below_ms: number;
      below_seq: number;
      limit: number;
    },
    _d,
    v: {
      agent?: boolean;
      operator?: boolean;
      event_type?: boolean;
      category?: boolean;
      after?: boolean;
      before?: boolean;
      below?: boolean;
    },
  ) => {
    const page = (side: 'target' | 'actor' | null) => {
      let query = db
        .selectFrom('audit_events')
        .select(['timestamp_ms', 'seq', bytesOf('summary', 'metadata').as('bytes')]);
      if (side === 'target') query = query.where('target_id', '=', p.agent);
      if (side === 'actor') query = query.where('actor_id', '=', p.agent).where('target_id', '<>', p.agent);
      if (v.operator) query = query.where('actor_id', '=', p.operator);
      if (v.event_type) query = query.where('event_type', '=', p.event_type);
      if (v.category) query = query.where('category', '=', p.category);
      if (v.after) query = query.where('timestamp_ms', '>=', p.after);
      if (v.before) query = query.where('timestamp_ms', '<', p.before);
      if (v.below)
        query = query.where((e) => e(e.refTuple('timestamp_ms', 'seq'), '<', e.tuple(p.below_ms, p.below_seq)));
      return query.orderBy('timestamp_ms', 'desc').orderBy('seq', 'desc').limit(p.limit);
    };
    if (!v.agent) return page(null);
    // Merges a page of events that target the agent with a page of events that the agent caused. A separate index
    // serves each page.
    return db
      .selectFrom(page('target').as('about'))
      .selectAll()
      .unionAll(db.selectFrom(page('actor').as('by')).selectAll())
      .orderBy('timestamp_ms', 'desc')
      .orderBy('seq', 'desc')
      .limit(p.limit);
  },
);

export const auditEvents = defineQuery('audit/events', (db, p: { seqs: readonly number[] }, d) =>
  db
    .selectFrom('audit_events')
    .selectAll()
    .where(d.isIn('seq', p.seqs, 'integer')),
);

// Positions in the chain are 1, 2, 3, …, in the order in which the sequencer found the committed events.

/** Events that are not in the chain yet, by sequence number. */
export const unplacedEvents = defineQuery('audit/unplaced', (db, p: { limit: number }) =>
  db.selectFrom('audit_events').selectAll().where('place', 'is', null).orderBy('seq').limit(p.limit),
);

export const countUnplaced = defineQuery('audit/count unplaced', (db) =>
  db
    .selectFrom('audit_events')
    .select((e) => e.fn.countAll<number>().as('count'))
    .where('place', 'is', null),
);

/** @param rows `{seq, place, hash}`, created by `jsonRows` */
export const placeEvents = defineQuery('audit/place', (db, p: { rows: string }, d) =>
  db
    .updateTable('audit_events')
    .from(d.rowsOf(p.rows, { seq: 'integer', place: 'integer', hash: 'text' }).as('placed'))
    .set((e) => ({ place: e.ref('placed.place'), hash: e.ref('placed.hash') }))
    .whereRef('audit_events.seq', '=', 'placed.seq')
    .where('audit_events.place', 'is', null),
);

/** Events in the chain with positions greater than `after`, in order. */
export const placedEvents = defineQuery('audit/placed', (db, p: { after: number; limit: number }) =>
  db
    .selectFrom('audit_events')
    .selectAll()
    .where('place', 'is not', null)
    .where('place', '>', p.after)
    .orderBy('place')
    .orderBy('seq')
    .limit(p.limit),
);

/**
 * Events in the chain that follow the row with this position and sequence number. Unlike {@link placedEvents}, includes
 * forged events that have the same position as that row.
 */
export const chainRows = defineQuery('audit/chain', (db, p: { place: number; seq: number; limit: number }) =>
  db
    .selectFrom('audit_events')
    .selectAll()
    .where('place', 'is not', null)
    .where((e) => e(e.refTuple('place', 'seq'), '>', e.tuple(p.place, p.seq)))
    .orderBy('place')
    .orderBy('seq')
    .limit(p.limit),
);

export const firstPlaced = defineQuery('audit/first placed', (db) =>
  db
    .selectFrom('audit_events')
    .select(['place', 'id'])
    .where('place', 'is not', null)
    .orderBy('place')
    .orderBy('seq')
    .limit(1),
);

/**
 * Chain markers. `head` is the position of the newest event, `anchor` is the position of the newest removed event, and
 * `cut` is the position up to which events are to be removed. `history` is a sequence number up to which events cause
 * no notifications.
 */
export type ChainEnd = 'head' | 'anchor' | 'cut' | 'history';

export const chainEnds = defineQuery('audit/ends', (db) =>
  db.selectFrom('audit_chain').selectAll().where('name', 'in', ['head', 'anchor', 'cut', 'history']),
);

/** Changes nothing if the marker has moved since it was read. */
export const moveChainEnd = defineQuery(
  'audit/move end',
  (db, p: { name: ChainEnd; from_place: number; from_hash: string; place: number; hash: string }) =>
    db
      .updateTable('audit_chain')
      .set({ place: p.place, hash: p.hash })
      .where('name', '=', p.name)
      .where('place', '=', p.from_place)
      .where('hash', '=', p.from_hash),
);

export const deletePlaced = defineQuery('audit/delete', (db, p: { up_to: number }) =>
  db.deleteFrom('audit_events').where('place', 'is not', null).where('place', '<=', p.up_to),
);
