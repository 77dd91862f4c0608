import { sql } from 'kysely';
import { createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/**
 * Adds tables for transcripts on PostgreSQL, so that all processes that share the database can read them. With SQLite,
 * transcripts are files.
 */
export const terminalChunks: Migration = {
  version: 32,
  name: 'terminal chunks',
  // Earlier releases write transcripts to files, and ignore the tables.
  compatibleFrom: 29,
  statements: (build) =>
    build.dialect.kind === 'sqlite'
      ? []
      : [
          createTable(build, 'terminal_transcripts', {
            columns: { session_id: 'text', writer: 'text', bytes: 'integer', packed: 'integer' },
            primaryKey: ['session_id'],
          }),
          // Finds the few transcripts that are open or not yet compressed.
          sql.raw('create index terminal_transcripts_unpacked on terminal_transcripts (session_id) where packed = 0'),
          createTable(build, 'terminal_chunks', {
            columns: { session_id: 'text', start: 'integer', size: 'integer', packed: 'integer', bytes: 'bytes' },
            primaryKey: ['session_id', 'start'],
          }),
          // The rows of complete transcripts are compressed already.
          sql.raw('alter table terminal_chunks alter column bytes set storage external'),
        ],
};
