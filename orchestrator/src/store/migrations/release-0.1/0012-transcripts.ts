import type { Migration } from '../migration.ts';

/** Adds columns for the reason why a terminal session ended, and for the hash and size of its transcript. */
export const transcripts: Migration = {
  version: 12,
  name: 'transcripts',
  statements: ({ db, dialect }) => [
    db.schema.alterTable('terminal_sessions').addColumn('end_reason', dialect.columns.text),
    db.schema.alterTable('terminal_sessions').addColumn('transcript_sha256', dialect.columns.text),
    db.schema.alterTable('terminal_sessions').addColumn('transcript_bytes', dialect.columns.integer),
  ],
};
