import { createIndex, createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/**
 * Adds tables for answered sign-in challenges and terminal tickets, so that all processes that share the database also
 * share them.
 */
export const signInAndTicketRows: Migration = {
  version: 30,
  name: 'sign-in and ticket rows',
  // Earlier releases store both in memory, and ignore the tables.
  compatibleFrom: 29,
  statements: (build) => [
    createTable(build, 'answered_challenges', {
      columns: { nonce: 'text', operator_id: 'text', issued_at_ms: 'integer' },
      primaryKey: ['nonce'],
    }),
    createIndex(build, 'answered_challenges_issued', 'answered_challenges', ['issued_at_ms']),
    createTable(build, 'terminal_tickets', {
      columns: {
        ticket_hash: 'text',
        session_id: 'text',
        operator_id: 'text',
        username: 'text',
        mode: 'text',
        token_hash: 'text?',
        expires_at_ms: 'integer',
      },
      primaryKey: ['ticket_hash'],
    }),
    createIndex(build, 'terminal_tickets_session', 'terminal_tickets', ['session_id']),
  ],
};
