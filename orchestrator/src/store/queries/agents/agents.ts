import type { Kysely, SelectQueryBuilder } from 'kysely';
import type { Dialect } from '../../dialect.ts';
import type { JsonText } from '../../json-text.ts';
import { defineQuery, defineVariants } from '../../query.ts';
import type { Schema } from '../../schema.ts';

type StringMap = Record<string, string>;

/** Columns that the API returns. */
const shown = [
  'node_id',
  'name',
  'status',
  'agent_version',
  'attributes',
  'initial_hostname',
  'initial_ip',
  'connected_at',
  'updated_at',
  'last_seen_at',
  'pin_source',
] as const;

/** Selects agents with their tags as a JSON object. */
const withTags = (db: Kysely<Schema>, d: Dialect) => tagged(db.selectFrom('agents').selectAll(), d);
const shownWithTags = (db: Kysely<Schema>, d: Dialect) => tagged(db.selectFrom('agents').select(shown), d);

const tagged = <O>(agents: SelectQueryBuilder<Schema, 'agents', O>, d: Dialect) =>
  agents.select((e) =>
    e
      .selectFrom('agent_tags')
      .select(d.objectOf('agent_tags.key', 'agent_tags.value').as('tags'))
      .whereRef('agent_tags.node_id', '=', 'agents.node_id')
      .$asScalar()
      .$castTo<JsonText<StringMap>>()
      .as('tags'),
  );

export const agentById = defineQuery('agents/by id', (db, p: { node_id: string }, d) =>
  withTags(db, d).where('node_id', '=', p.node_id),
);

/** Finds only approved agents. A rejected agent keeps its name, but can be referenced only by its ID. */
export const agentByName = defineQuery('agents/by name', (db, p: { name: string }, d) =>
  withTags(db, d).where('name', '=', p.name).where('status', '=', 'approved'),
);

/** {@link agentById} with only the columns that the API returns. */
export const shownAgentById = defineQuery('agents/shown by id', (db, p: { node_id: string }, d) =>
  shownWithTags(db, d).where('node_id', '=', p.node_id),
);

/** {@link agentByName} with only the columns that the API returns. */
export const shownAgentByName = defineQuery('agents/shown by name', (db, p: { name: string }, d) =>
  shownWithTags(db, d).where('name', '=', p.name).where('status', '=', 'approved'),
);

/** For preconditions: returns a row if the agent is approved. */
export const approvedAgent = defineQuery('agents/approved', (db, p: { node_id: string }) =>
  db.selectFrom('agents').select('node_id').where('node_id', '=', p.node_id).where('status', '=', 'approved'),
);

/** Returns the given agents that are approved. */
export const approvedAgents = defineQuery('agents/approved of', (db, p: { ids: readonly string[] }, d) =>
  db.selectFrom('agents').select('node_id').where(d.isIn('node_id', p.ids)).where('status', '=', 'approved'),
);

export const agentIdTakingName = defineQuery('agents/taking name', (db, p: { name: string; node_id: string }) =>
  db.selectFrom('agents').select('node_id').where('name', '=', p.name).where('node_id', '!=', p.node_id),
);

type Status = 'pending' | 'approved' | 'rejected';
interface Listed {
  status?: boolean;
  q?: boolean;
}

/**
 * Agents, by ID. `q` searches attributes as text, which may match too many agents, so the caller must filter the
 * results.
 */
export const agents = defineVariants(
  'agents/list',
  (
    db,
    p: { status: Status; q: string; after: string; limit: number; offset: number },
    d,
    v: Listed & { after?: boolean },
  ) => {
    let query = shownWithTags(db, d);
    if (v.status) query = query.where('status', '=', p.status);
    if (v.q) query = query.where((w) => w.or(searched.map((column) => d.containsText(column, p.q))));
    if (v.after) query = query.where('node_id', '>', p.after);
    return query.orderBy('node_id').limit(p.limit).offset(p.offset);
  },
);
const searched = ['name', 'initial_hostname', 'attributes'] as const;

/** The sort keys of agents. Does not read the large columns. */
export const agentSortKeys = defineVariants(
  'agents/sort keys',
  (db, p: { status: Status; q: string }, d, v: Listed) => {
    let query = db.selectFrom('agents').select(['node_id', 'name', 'connected_at', 'last_seen_at']);
    if (v.status) query = query.where('status', '=', p.status);
    if (v.q) query = query.where((w) => w.or(searched.map((column) => d.containsText(column, p.q))));
    return query;
  },
);

/** IDs and names of agents, by ID. */
export const namesInOrder = defineVariants(
  'agents/names in order',
  (db, p: { status: Status }, _, v: { status?: boolean }) => {
    const query = db.selectFrom('agents').select(['node_id', 'name']).orderBy('node_id');
    return v.status ? query.where('status', '=', p.status) : query;
  },
);

export const agentsByIds = defineQuery('agents/by ids', (db, p: { ids: readonly string[] }, d) =>
  shownWithTags(db, d).where(d.isIn('node_id', p.ids)),
);

/** The columns of an agent that the API returns. */
export type ShownAgent = NonNullable<(typeof agentsByIds)['types']>['row'];

/** The names of the given agents. Omits agents that do not exist. */
export const agentNames = defineQuery('agents/names', (db, p: { ids: readonly string[] }, d) =>
  db.selectFrom('agents').select(['node_id', 'name']).where(d.isIn('node_id', p.ids)),
);

/** Columns from which other processes detect that an agent's link, status, name, or tags have changed. */
const noted = (d: Dialect) => (d.kind === 'postgres' ? { link_change: d.transactionId } : {});

/** Columns of a claimed link. Only one process uses an SQLite file, so on SQLite, nothing reads the other columns. */
const claimedBy = (d: Dialect, p: { incarnation: string; instance: string }) => ({
  link_incarnation: p.incarnation,
  ...(d.kind === 'postgres' ? { link_instance: p.instance, link_probe: null } : {}),
  ...noted(d),
});

/** Inserts a connected agent. */
export const insertAgent = defineQuery(
  'agents/insert',
  (
    db,
    p: {
      node_id: string;
      public_key: string;
      name: string | null;
      status: 'pending' | 'approved';
      agent_version: string;
      attributes: JsonText<StringMap>;
      initial_hostname: string;
      initial_ip: string;
      remote_ip: string;
      now: number;
      pin_source: string;
      enrolment_token_id: string | null;
      incarnation: string;
      instance: string;
    },
    d,
  ) =>
    db.insertInto('agents').values({
      node_id: p.node_id,
      public_key: p.public_key,
      name: p.name,
      status: p.status,
      agent_version: p.agent_version,
      attributes: p.attributes,
      initial_hostname: p.initial_hostname,
      initial_ip: p.initial_ip,
      remote_ip: p.remote_ip,
      connected_at: p.now,
      updated_at: p.now,
      last_seen_at: p.now,
      pin_source: p.pin_source,
      enrolment_token_id: p.enrolment_token_id,
      first_seen_at: p.now,
      ...claimedBy(d, p),
    }),
);

/**
 * Claims the agent's link for a process. Changes nothing if `lost_at` has changed since it was read. In `p.lost_at`, 0
 * represents null.
 */
export const markConnected = defineQuery(
  'agents/connected',
  (
    db,
    p: {
      node_id: string;
      agent_version: string;
      attributes: JsonText<StringMap>;
      pin_source: string;
      remote_ip: string;
      lost_at: number;
      now: number;
      incarnation: string;
      instance: string;
    },
    d,
  ) =>
    db
      .updateTable('agents')
      .set({
        agent_version: p.agent_version,
        attributes: p.attributes,
        pin_source: p.pin_source,
        remote_ip: p.remote_ip,
        lost_at: null,
        connected_at: p.now,
        last_seen_at: p.now,
        ...claimedBy(d, p),
      })
      .where('node_id', '=', p.node_id)
      .where((e) => e(e.fn.coalesce('lost_at', e.lit(0)), '=', p.lost_at)),
);

export const setAttributes = defineQuery(
  'agents/set attributes',
  (db, p: { node_id: string; attributes: JsonText<StringMap>; now: number; incarnation: string }) =>
    db
      .updateTable('agents')
      .set({ attributes: p.attributes, updated_at: p.now, last_seen_at: p.now })
      .where('node_id', '=', p.node_id)
      .where('link_incarnation', '=', p.incarnation),
);

/** Returns a row if the process has the agent's newest link. */
export const linkClaimed = defineQuery('agents/link claimed', (db, p: { node_id: string; incarnation: string }) =>
  db
    .selectFrom('agents')
    .select('node_id')
    .where('node_id', '=', p.node_id)
    .where('link_incarnation', '=', p.incarnation),
);

/** Never decreases the time, because a late write must not overwrite the time of a newer link. */
export const markLastSeen = defineQuery('agents/last seen', (db, p: { node_id: string; at: number }) =>
  db
    .updateTable('agents')
    .set({ last_seen_at: p.at })
    .where('node_id', '=', p.node_id)
    .where('last_seen_at', '<', p.at),
);

/**
 * Approved agents that are not marked as lost and were last seen in a time range, least recently seen first. For
 * paging, skips agents in the first second of the range up to `after_id`.
 */
export const unseenAgents = defineQuery(
  'agents/unseen',
  (db, p: { seen_since: number; after_id: string; seen_before: number; limit: number }) =>
    unseen(db)
      .where('last_seen_at', '>=', p.seen_since)
      .where('last_seen_at', '<=', p.seen_before)
      .where((w) => w.or([w('last_seen_at', '>', p.seen_since), w('node_id', '>', p.after_id)]))
      .orderBy('last_seen_at')
      .orderBy('node_id')
      .limit(p.limit),
);

/** Returns the given agents that were last seen before a time, with the conditions of {@link unseenAgents}. */
export const unseenAmong = defineQuery(
  'agents/unseen among',
  (db, p: { ids: readonly string[]; seen_before: number }, d) =>
    unseen(db).where('last_seen_at', '<=', p.seen_before).where(d.isIn('node_id', p.ids)),
);

const unseen = (db: Kysely<Schema>) =>
  db
    .selectFrom('agents')
    .select(['node_id', 'name', 'initial_hostname', 'last_seen_at'])
    .where('status', '=', 'approved')
    .where('lost_at', 'is', null);

/** Changes nothing if the agent has been seen, marked as lost, or rejected since it was read. */
export const markLost = defineQuery('agents/lost', (db, p: { node_id: string; last_seen_at: number; now: number }) =>
  db
    .updateTable('agents')
    .set({ lost_at: p.now })
    .where('node_id', '=', p.node_id)
    .where('status', '=', 'approved')
    .where('lost_at', 'is', null)
    .where('last_seen_at', '=', p.last_seen_at),
);

/** Changes nothing if a clone was recorded after `before`. */
export const markCloneSeen = defineQuery(
  'agents/clone seen',
  (db, p: { node_id: string; before: number; now: number }) =>
    db
      .updateTable('agents')
      .set({ clone_seen_at: p.now })
      .where('node_id', '=', p.node_id)
      .where((e) => e(e.fn.coalesce('clone_seen_at', e.lit(0)), '<=', p.before)),
);

export const touchAgent = defineQuery('agents/touch', (db, p: { node_id: string; now: number }, d) =>
  db
    .updateTable('agents')
    .set({ updated_at: p.now, ...noted(d) })
    .where('node_id', '=', p.node_id),
);

/** Changes nothing unless the agent still has the status `from`. */
export const setAgentStatus = defineQuery(
  'agents/set status',
  (
    db,
    p: {
      node_id: string;
      from: 'pending' | 'approved' | 'rejected';
      status: 'pending' | 'approved' | 'rejected';
      name: string | null;
      now: number;
    },
    d,
  ) =>
    db
      .updateTable('agents')
      .set({ status: p.status, name: p.name, updated_at: p.now, ...noted(d) })
      .where('node_id', '=', p.node_id)
      .where('status', '=', p.from),
);

export const deleteRejectedAgent = defineQuery('agents/delete', (db, p: { node_id: string }) =>
  db.deleteFrom('agents').where('node_id', '=', p.node_id).where('status', '=', 'rejected'),
);

/** Returns a row if more than `capacity` agents are pending. */
export const pendingBeyond = defineQuery('agents/pending beyond', (db, p: { capacity: number }) =>
  db
    .selectFrom('agents')
    .select('node_id')
    .where('status', '=', 'pending')
    .orderBy('node_id')
    .limit(1)
    .offset(p.capacity),
);

/** Pending agents without an enrollment token, least recently seen first. */
export const pendingWithoutToken = defineQuery('agents/pending without token', (db, p: { limit: number }) =>
  db
    .selectFrom('agents')
    .select(['node_id', 'initial_ip', 'initial_hostname', 'last_seen_at'])
    .where('status', '=', 'pending')
    .where('enrolment_token_id', 'is', null)
    .orderBy('last_seen_at')
    .orderBy('node_id')
    .limit(p.limit),
);

/** Changes nothing if the agent is no longer pending or has been seen after `seen_until`. */
export const deletePendingAgent = defineQuery(
  'agents/delete pending',
  (db, p: { node_id: string; seen_until: number }) =>
    db
      .deleteFrom('agents')
      .where('node_id', '=', p.node_id)
      .where('status', '=', 'pending')
      .where('last_seen_at', '<=', p.seen_until),
);

export const acknowledgedSeq = defineQuery('spool/acknowledged', (db, p: { node_id: string }) =>
  db.selectFrom('spool_ack').select('seq').where('node_id', '=', p.node_id),
);

/** Never decreases the sequence number. Changes nothing unless the process has the agent's newest link. */
export const advanceSpool = defineQuery(
  'spool/advance',
  (db, p: { node_id: string; instance_id: string; seq: number; incarnation: string }, d) =>
    db
      .insertInto('spool_ack')
      .columns(['node_id', 'instance_id', 'seq'])
      .expression(
        db
          .selectFrom('agents')
          .select(['node_id', d.typed(p.instance_id, 'text').as('instance_id'), d.typed(p.seq, 'integer').as('seq')])
          .where('node_id', '=', p.node_id)
          .where('link_incarnation', '=', p.incarnation),
      )
      .onConflict((c) =>
        c
          .column('node_id')
          .doUpdateSet({ instance_id: (e) => e.ref('excluded.instance_id'), seq: (e) => e.ref('excluded.seq') })
          .whereRef('excluded.seq', '>', 'spool_ack.seq'),
      ),
);

export const deleteSpool = defineQuery('spool/delete', (db, p: { node_id: string }) =>
  db.deleteFrom('spool_ack').where('node_id', '=', p.node_id),
);

/** Returns the given agents that exist, with the columns that selectors read. */
export const agentsForSelectors = defineQuery('agents/for selectors', (db, p: { node_ids: readonly string[] }, d) =>
  withTags(db, d).where(d.isIn('node_id', p.node_ids)),
);
