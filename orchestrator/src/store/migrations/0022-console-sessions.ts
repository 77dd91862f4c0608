import { sql } from 'kysely';
import type { Migration } from './migration.ts';

/**
 * Adds columns for the list of an operator's sign-in sessions, and for browser sessions, which have a cookie. Gives
 * existing sessions an ID.
 */
export const consoleSessions: Migration = {
  version: 22,
  name: 'console sessions',
  statements: ({ db, dialect: { kind, columns } }) => [
    db.schema.alterTable('sessions').addColumn('session_id', columns.text),
    db.schema.alterTable('sessions').addColumn('kind', columns.text, (column) => column.notNull().defaultTo('token')),
    db.schema.alterTable('sessions').addColumn('last_used_at', columns.integer),
    db.schema.alterTable('sessions').addColumn('user_agent', columns.text),
    db.schema.alterTable('sessions').addColumn('address', columns.text),
    db.updateTable('sessions').set({
      session_id:
        kind === 'postgres' ? sql`upper(replace(gen_random_uuid()::text, '-', ''))` : sql`hex(randomblob(16))`,
    }),
  ],
};
