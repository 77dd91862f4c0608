import { createIndex, createTable } from '../create-table.ts';
import type { Migration } from './migration.ts';

/**
 * Adds a column for the module revisions of each apply, and a table for the revisions that each agent last applied. An
 * agent's rows are added at its next apply, because earlier releases did not record revisions.
 */
export const appliedModules: Migration = {
  version: 31,
  name: 'applied modules',
  // Earlier releases leave the column null and ignore the table.
  compatibleFrom: 29,
  statements: (build) => [
    build.db.schema.alterTable('operations').addColumn('revisions', build.dialect.columns.text),
    createTable(build, 'applied_modules', {
      columns: { node_id: 'text', module: 'text', revision: 'integer' },
      primaryKey: ['node_id', 'module'],
    }),
    createIndex(build, 'applied_modules_revision', 'applied_modules', ['module', 'revision', 'node_id']),
  ],
};
