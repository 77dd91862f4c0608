import { createIndex, createTable } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

/** Adds a table for encrypted previous values of secrets. */
export const formerSecrets: Migration = {
  version: 9,
  name: 'former secrets',
  statements: (build) => [
    createTable(build, 'former_secrets', {
      columns: { name: 'text', version: 'integer', key_id: 'text', sealed: 'text', replaced_at: 'integer' },
      primaryKey: ['name', 'version'],
    }),
    createIndex(build, 'former_secrets_by_key', 'former_secrets', ['key_id', 'name']),
    createIndex(build, 'former_secrets_by_age', 'former_secrets', ['replaced_at']),
  ],
};
