import { createIndex, createTable, type TableShape } from '../../create-table.ts';
import type { Migration } from '../migration.ts';

const tables: Record<string, TableShape> = {
  secrets: {
    columns: {
      name: 'text',
      version: 'integer',
      key_id: 'text',
      sealed: 'text',
      description: 'text?',
      expires_at_ms: 'integer?',
      untold_expiry_ms: 'integer?',
      restriction: 'text?',
      created_at_ms: 'integer',
      created_by: 'text',
      updated_at_ms: 'integer',
      updated_by: 'text',
    },
    primaryKey: ['name'],
  },
  // A row remains after its secret is removed, so that a version number is never reused for another value of the same
  // name.
  secret_versions: { columns: { name: 'text', version: 'integer' }, primaryKey: ['name'] },
};

/** Adds the tables for encrypted secrets. */
export const secrets: Migration = {
  version: 3,
  name: 'secrets',
  statements: (build) => [
    ...Object.entries(tables).map(([name, shape]) => createTable(build, name, shape)),
    createIndex(build, 'secrets_by_untold_expiry', 'secrets', ['untold_expiry_ms']),
    createIndex(build, 'secrets_by_key', 'secrets', ['key_id', 'name']),
  ],
};
