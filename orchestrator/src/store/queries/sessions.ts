import type { Kysely } from 'kysely';
import type { Dialect } from '../dialect.ts';
import { defineQuery } from '../query.ts';
import type { Schema, SessionsTable } from '../schema.ts';

/** Operators' sign-in sessions. */

export const insertSession = defineQuery('sessions/insert', (db, p: Required<SessionsTable>) =>
  db.insertInto('sessions').values({
    token_hash: p.token_hash,
    operator_id: p.operator_id,
    created_at: p.created_at,
    expires_at: p.expires_at,
    signed_in_at: p.signed_in_at,
    bound: p.bound,
    session_id: p.session_id,
    kind: p.kind,
    last_used_at: p.last_used_at,
    user_agent: p.user_agent,
    address: p.address,
  }),
);

/** Live sign-in sessions whose challenge did not name a server, with their operators. */
export const unboundSessions = defineQuery('sessions/unbound', (db, p: { now: number }) =>
  db
    .selectFrom('sessions')
    .innerJoin('operators', 'operators.operator_id', 'sessions.operator_id')
    .select(['sessions.token_hash', 'sessions.operator_id', 'operators.username'])
    .where('sessions.bound', '=', 0)
    .where('sessions.expires_at', '>', p.now),
);

/** A sign-in session with its operator. The caller must check whether the session is still valid. */
export const sessionByHash = defineQuery('sessions/by hash', (db, p: { token_hash: string }) =>
  db
    .selectFrom('sessions')
    .innerJoin('operators', 'operators.operator_id', 'sessions.operator_id')
    .selectAll('sessions')
    .select(['operators.username', 'operators.role', 'operators.removed_at'])
    .where('sessions.token_hash', '=', p.token_hash),
);

/** Returns the given sign-in sessions that exist, like {@link sessionByHash}. */
export const sessionsByHash = defineQuery('sessions/by hashes', (db, p: { token_hashes: readonly string[] }, d) =>
  db
    .selectFrom('sessions')
    .innerJoin('operators', 'operators.operator_id', 'sessions.operator_id')
    .selectAll('sessions')
    .select(['operators.username', 'operators.role', 'operators.removed_at'])
    .where(d.isIn('sessions.token_hash', p.token_hashes)),
);

/** The sessions that have the given IDs, which a renewed session shares with its predecessors. */
export const sessionsBySignIn = defineQuery('sessions/by sign-in', (db, p: { session_ids: readonly string[] }, d) =>
  db.selectFrom('sessions').select(['token_hash', 'session_id']).where(d.isIn('session_id', p.session_ids)),
);

/** An operator's unexpired sign-in sessions, newest first. */
export const sessionsOf = defineQuery('sessions/of operator', (db, p: { operator_id: string; now: number }) =>
  db
    .selectFrom('sessions')
    .selectAll()
    .where('operator_id', '=', p.operator_id)
    .where('expires_at', '>', p.now)
    .orderBy('created_at', 'desc')
    .orderBy('session_id'),
);

/** For preconditions: returns a row if the operator has an unexpired session besides the given ones. */
export const otherSessionOf = defineQuery(
  'sessions/others of operator',
  (db, p: { operator_id: string; now: number; token_hashes: readonly string[] }, d) =>
    db
      .selectFrom('sessions')
      .select('session_id')
      .where('operator_id', '=', p.operator_id)
      .where('expires_at', '>', p.now)
      .where(d.isNotIn('token_hash', p.token_hashes))
      .limit(1),
);

/**
 * Records that a session is in use. Changes nothing if the session has ended, or if a later use has already been
 * recorded, because writes may be committed in any order.
 */
export const useSession = defineQuery(
  'sessions/use',
  (db, p: Pick<SessionsTable, 'token_hash' | 'last_used_at' | 'expires_at'> & { last_used_at: number }) =>
    db
      .updateTable('sessions')
      .set({ last_used_at: p.last_used_at, expires_at: p.expires_at })
      .where('token_hash', '=', p.token_hash)
      .where(({ eb, or }) => or([eb('last_used_at', 'is', null), eb('last_used_at', '<', p.last_used_at)])),
);

/** Replaces times that were stored while the clock was ahead. Changes nothing if the session has ended. */
export const correctSession = defineQuery(
  'sessions/correct',
  (db, p: Pick<SessionsTable, 'token_hash' | 'signed_in_at' | 'last_used_at' | 'expires_at'>) =>
    db
      .updateTable('sessions')
      .set({ signed_in_at: p.signed_in_at, last_used_at: p.last_used_at, expires_at: p.expires_at })
      .where('token_hash', '=', p.token_hash),
);

export const deleteSession = defineQuery('sessions/delete', (db, p: { token_hash: string }) =>
  db.deleteFrom('sessions').where('token_hash', '=', p.token_hash),
);

export const deleteSessionsOf = defineQuery('sessions/delete of operator', (db, p: { operator_id: string }) =>
  db.deleteFrom('sessions').where('operator_id', '=', p.operator_id),
);

export const deleteExpiredSessions = defineQuery('sessions/delete expired', (db, p: { now: number }) =>
  db.deleteFrom('sessions').where('expires_at', '<=', p.now),
);

/**
 * Selects the row of a live sign-in session. On PostgreSQL, locks the row until the transaction ends. Otherwise, a
 * write that began before its operator was removed could commit afterward, because PostgreSQL may serialize
 * transactions in a different order than real time.
 */
export const liveSessionRow = (db: Kysely<Schema>, p: { session: string; now: number }, d: Dialect) => {
  const row = db.selectFrom('sessions').where('token_hash', '=', p.session).where('expires_at', '>', p.now);
  return d.kind === 'postgres' ? row.forShare() : row;
};

/** For preconditions: returns a row if the sign-in session is live. */
export const liveSession = defineQuery('sessions/live', (db, p: { session: string; now: number }, d) =>
  liveSessionRow(db, p, d).select('token_hash'),
);
