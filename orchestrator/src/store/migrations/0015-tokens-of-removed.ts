import type { Migration } from './migration.ts';

/** Revokes the enrollment tokens of removed operators, which earlier releases left valid. */
export const tokensOfRemoved: Migration = {
  version: 15,
  name: 'enrollment tokens of removed operators',
  statements: ({ db }) => [
    db
      .updateTable('enrolment_tokens')
      .set((e) => ({
        revoked_at: e
          .selectFrom('operators')
          .select('operators.removed_at')
          .whereRef('operators.operator_id', '=', 'enrolment_tokens.created_by'),
      }))
      .where('revoked_at', 'is', null)
      .where('uses_left', '>', 0)
      .where((w) =>
        w.exists(
          w
            .selectFrom('operators')
            .select('operators.operator_id')
            .whereRef('operators.operator_id', '=', 'enrolment_tokens.created_by')
            .where('operators.removed_at', 'is not', null),
        ),
      ),
  ],
};
