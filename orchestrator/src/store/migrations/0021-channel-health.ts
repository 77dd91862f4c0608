import type { Migration } from './migration.ts';

/** Adds, to each channel, the time of its last delivery and the error of its last attempt. */
export const channelHealth: Migration = {
  version: 21,
  name: 'channel health',
  statements: ({ db, dialect }) => [
    db.schema.alterTable('channels').addColumn('delivered_at', dialect.columns.integer),
    db.schema.alterTable('channels').addColumn('last_error', dialect.columns.text),
  ],
};
