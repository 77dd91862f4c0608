import type { JsonText } from '../../json-text.ts';
import { defineQuery, defineVariants } from '../../query.ts';

export const insertEnrolmentToken = defineQuery(
  'enrolment/insert',
  (
    db,
    p: {
      id: string;
      token_hash: string;
      name: string | null;
      tags: JsonText<Record<string, string>>;
      approve: boolean;
      uses_left: number;
      created_at: number;
      created_by: string;
      expires_at: number;
    },
  ) =>
    db.insertInto('enrolment_tokens').values({
      id: p.id,
      token_hash: p.token_hash,
      name: p.name,
      tags: p.tags,
      approve: p.approve,
      uses_left: p.uses_left,
      created_at: p.created_at,
      created_by: p.created_by,
      expires_at: p.expires_at,
      revoked_at: null,
    }),
);

export const enrolmentTokenByHash = defineQuery('enrolment/by hash', (db, p: { token_hash: string }) =>
  db.selectFrom('enrolment_tokens').selectAll().where('token_hash', '=', p.token_hash),
);

/** Enrollment tokens, newest first. Without `ended`, returns only tokens that can still enroll an agent. */
export const enrolmentTokens = defineVariants(
  'enrolment/list',
  (db, p: { now: number; limit: number; offset: number }, _d, v: { ended: boolean }) => {
    const query = db.selectFrom('enrolment_tokens').selectAll().orderBy('id', 'desc').limit(p.limit).offset(p.offset);
    if (v.ended) return query;
    return query.where('revoked_at', 'is', null).where('uses_left', '>', 0).where('expires_at', '>', p.now);
  },
);

export const deleteOldEnrolmentTokens = defineQuery('enrolment/delete old', (db, p: { expired_before: number }) =>
  db.deleteFrom('enrolment_tokens').where('expires_at', '<=', p.expired_before),
);

/** A live token that reserves this name. */
export const enrolmentTokenNaming = defineQuery('enrolment/naming', (db, p: { name: string; now: number }) =>
  db
    .selectFrom('enrolment_tokens')
    .select('id')
    .where('name', '=', p.name)
    .where('revoked_at', 'is', null)
    .where('uses_left', '>', 0)
    .where('expires_at', '>', p.now)
    .limit(1),
);

/** Records another use of the token. Changes nothing if the token has no uses left, is revoked, or has expired. */
export const useEnrolmentToken = defineQuery('enrolment/use', (db, p: { id: string; now: number }) =>
  db
    .updateTable('enrolment_tokens')
    .set((e) => ({ uses_left: e('uses_left', '-', 1) }))
    .where('id', '=', p.id)
    .where('uses_left', '>', 0)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', p.now),
);

export const revokeEnrolmentToken = defineQuery('enrolment/revoke', (db, p: { id: string; now: number }) =>
  db
    .updateTable('enrolment_tokens')
    .set({ revoked_at: p.now })
    .where('id', '=', p.id)
    .where('revoked_at', 'is', null)
    .where('uses_left', '>', 0),
);

/** Live tokens that an operator created, oldest first. */
export const liveEnrolmentTokensOf = defineQuery(
  'enrollment/live tokens by operator',
  (db, p: { operator_id: string; now: number; limit: number }) =>
    db
      .selectFrom('enrolment_tokens')
      .select(['id', 'name'])
      .where('created_by', '=', p.operator_id)
      .where('revoked_at', 'is', null)
      .where('uses_left', '>', 0)
      .where('expires_at', '>', p.now)
      .orderBy('id')
      .limit(p.limit),
);

/** The number of live tokens that an operator created, and the ID of the newest token. */
export const countLiveEnrolmentTokensOf = defineQuery(
  'enrolment/count live of operator',
  (db, p: { operator_id: string; now: number }) =>
    db
      .selectFrom('enrolment_tokens')
      .select((e) => [e.fn.countAll<number>().as('count'), e.fn.max<string | null>('id').as('newest')])
      .where('created_by', '=', p.operator_id)
      .where('revoked_at', 'is', null)
      .where('uses_left', '>', 0)
      .where('expires_at', '>', p.now),
);

/** For preconditions: returns a row if the operator has a live token newer than this token. */
export const newerEnrolmentTokenOf = defineQuery(
  'enrolment/newer of operator',
  (db, p: { operator_id: string; now: number; newest: string }) =>
    db
      .selectFrom('enrolment_tokens')
      .select('id')
      .where('created_by', '=', p.operator_id)
      .where('revoked_at', 'is', null)
      .where('uses_left', '>', 0)
      .where('expires_at', '>', p.now)
      .where('id', '>', p.newest)
      .limit(1),
);

export const revokeEnrolmentTokensOf = defineQuery(
  'enrolment/revoke of operator',
  (db, p: { operator_id: string; now: number }) =>
    db
      .updateTable('enrolment_tokens')
      .set({ revoked_at: p.now })
      .where('created_by', '=', p.operator_id)
      .where('revoked_at', 'is', null)
      .where('uses_left', '>', 0)
      .where('expires_at', '>', p.now),
);

export const revokeAllEnrolmentTokens = defineQuery('enrolment/revoke all', (db, p: { now: number }) =>
  db
    .updateTable('enrolment_tokens')
    .set({ revoked_at: p.now })
    .where('revoked_at', 'is', null)
    .where('uses_left', '>', 0),
);
