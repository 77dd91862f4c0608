import { defineQuery } from '../query.ts';

/**
 * Answered sign-in challenges. A challenge without an answer has no row, so only someone with an operator's key can add
 * rows.
 */

/** Records that a challenge has been answered. Changes nothing if the challenge was already answered. */
export const insertAnswered = defineQuery(
  'challenges/answer',
  (db, p: { nonce: string; operator_id: string; issued_at_ms: number }) =>
    db
      .insertInto('answered_challenges')
      .values({ nonce: p.nonce, operator_id: p.operator_id, issued_at_ms: p.issued_at_ms })
      .onConflict((conflict) => conflict.column('nonce').doNothing()),
);

/** Time at which the newest answered challenge was issued. */
export const newestAnswered = defineQuery('challenges/newest answered', (db) =>
  db.selectFrom('answered_challenges').select('issued_at_ms').orderBy('issued_at_ms', 'desc').limit(1),
);

/** The challenges that an operator answered and that were issued at or after a time. */
export const answeredSince = defineQuery(
  'challenges/answered since',
  (db, p: { operator_id: string; since_ms: number }) =>
    db
      .selectFrom('answered_challenges')
      .select('nonce')
      .where('issued_at_ms', '>=', p.since_ms)
      .where('operator_id', '=', p.operator_id),
);

/** Deletes a batch of answered challenges that were issued before a time. */
export const deleteAnswered = defineQuery('challenges/delete', (db, p: { before_ms: number; limit: number }) =>
  db
    .deleteFrom('answered_challenges')
    .where('nonce', 'in', (e) =>
      e
        .selectFrom('answered_challenges')
        .select('nonce')
        .where('issued_at_ms', '<', p.before_ms)
        .orderBy('issued_at_ms')
        .limit(p.limit),
    ),
);

/** Deletes the answered challenges that were issued after a time. */
export const deleteAnsweredAfter = defineQuery('challenges/delete after', (db, p: { after_ms: number }) =>
  db.deleteFrom('answered_challenges').where('issued_at_ms', '>', p.after_ms),
);
