import type { Migration } from './migration.ts';

/** Adds columns to channels for the time of the last delivery and the error of the last attempt. */
export const channelHealth: Migration = {
  version: 21,
  name: 'channel health',
  statements: ({ db, dialect }) => [
    db.schema.alterTable('channels').addColumn('delivered_at', dialect.columns.integer),
    db.schema.alterTable('channels').addColumn('last_error', dialect.columns.text),
  ],
};
