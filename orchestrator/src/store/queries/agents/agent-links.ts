import { sql } from 'kysely';
import { defineQuery } from '../../query.ts';

/** Records which process has the newest link of each agent, for processes that share a PostgreSQL database. */

/**
 * Returns `mark`, and the agents whose link, status, name, or tags have changed in transactions with IDs of `since` or
 * greater. A later call with `mark` misses no change: all transactions with smaller IDs had ended, and are visible to
 * this call. Without changes, returns one row whose `node_id` is null.
 */
export const changedLinks = defineQuery('agent links/changed', (db, p: { since: number }, d) =>
  db
    .selectFrom(db.selectNoFrom(d.oldestOpenTransaction.as('mark')).as('now'))
    .leftJoin('agents', (join) => join.on('agents.link_change', '>=', p.since))
    .select([
      'now.mark',
      'agents.node_id',
      'agents.link_incarnation',
      'agents.link_change',
      'agents.link_probe',
      'agents.last_seen_at',
    ]),
);

/** A page of all claimed links, by agent. */
export const claimedLinks = defineQuery('agent links/claimed', (db, p: { after: string; limit: number }) =>
  db
    .selectFrom('agents')
    .select(['node_id', 'link_incarnation'])
    .where('node_id', '>', p.after)
    .where('link_incarnation', 'is not', null)
    .orderBy('node_id')
    .limit(p.limit),
);

export const linkOf = defineQuery('agent links/of agent', (db, p: { node_id: string }) =>
  db.selectFrom('agents').select(['link_incarnation', 'link_instance', 'link_probe']).where('node_id', '=', p.node_id),
);

/** Ends the claim of a process, unless another process has claimed the link in the meantime. */
export const releaseLink = defineQuery('agent links/release', (db, p: { node_id: string; incarnation: string }, d) =>
  db
    .updateTable('agents')
    .set({ link_incarnation: null, link_instance: null, link_probe: null, link_change: d.transactionId })
    .where('node_id', '=', p.node_id)
    .where('link_incarnation', '=', p.incarnation),
);

/** Asks the process that holds the link whether the agent still responds. */
export const askProbe = defineQuery(
  'agent links/ask',
  (db, p: { node_id: string; incarnation: string; probe: string }, d) =>
    db
      .updateTable('agents')
      .set({ link_probe: p.probe, link_change: d.transactionId })
      .where('node_id', '=', p.node_id)
      .where('link_incarnation', '=', p.incarnation),
);

/** Answers a probe request, unless another process probes or claims the link in the meantime. */
export const answerProbe = defineQuery(
  'agent links/answer',
  (db, p: { node_id: string; probe: string; answer: string }) =>
    db
      .updateTable('agents')
      .set({ link_probe: p.answer })
      .where('node_id', '=', p.node_id)
      .where('link_probe', '=', p.probe),
);

/** Resets transaction IDs from another server, which may be larger than this server's. */
export const resetChanges = defineQuery('agent links/reset changes', (db, _: Record<never, never>, d) =>
  db
    .updateTable('agents')
    .set({ link_change: 0 })
    .where((e) => e('link_change', '>', d.transactionId)),
);

/** Agents of a process that have work to send: operations that were not dispatched, and requested cancellations. */
export const workOfProcess = defineQuery('agent links/work', (db, p: { incarnation: string }) =>
  db
    .selectFrom('operations')
    .innerJoin('agents', 'agents.node_id', 'operations.node_id')
    .select((e) => [
      'operations.node_id',
      e.fn.max(sql<number>`case when dispatched_at is null then 1 else 0 end`).as('waits'),
      e.fn.max(sql<number>`case when cancel_requested_at is null then 0 else 1 end`).as('cancels'),
    ])
    .where('operations.status', 'in', ['queued', 'running'])
    .where((w) => w.or([w('dispatched_at', 'is', null), w('cancel_requested_at', 'is not', null)]))
    .where('agents.link_incarnation', '=', p.incarnation)
    .groupBy('operations.node_id'),
);

/** Stores when a process last heard from each of its agents. */
export const putContacts = defineQuery(
  'replica contacts/put',
  (db, p: { incarnation: string; at: number; contacts: Uint8Array }) =>
    db
      .insertInto('replica_contacts')
      .values({ incarnation: p.incarnation, at: p.at, contacts: p.contacts })
      .onConflict((conflict) =>
        conflict.column('incarnation').doUpdateSet({
          at: (e) => e.ref('excluded.at'),
          contacts: (e) => e.ref('excluded.contacts'),
        }),
      ),
);

/** Contacts that other processes have stored since a time, in Unix seconds. */
export const contactsSince = defineQuery('replica contacts/since', (db, p: { incarnation: string; since: number }) =>
  db.selectFrom('replica_contacts').selectAll().where('incarnation', '<>', p.incarnation).where('at', '>=', p.since),
);

/** Deletes the contacts of processes that have ended. */
export const deleteStaleContacts = defineQuery('replica contacts/delete stale', (db) =>
  db
    .deleteFrom('replica_contacts')
    .where((w) =>
      w.not(
        w.exists(
          w
            .selectFrom('replicas')
            .select('incarnation')
            .whereRef('replicas.incarnation', '=', 'replica_contacts.incarnation'),
        ),
      ),
    ),
);
