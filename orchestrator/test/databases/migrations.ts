import { migrations } from '../../src/store/migrations/index.ts';
import type { Migration } from '../../src/store/migrations/migration.ts';

/** A future migration for upgrade tests: three statements, one of which changes rows. */
export const oneMore: Migration = {
  version: migrations.length + 1,
  name: 'one more',
  statements: ({ db, dialect }) => [
    db.schema.createTable('extra').addColumn('id', dialect.columns.text).modifyEnd(dialect.columns.tableEnd),
    db.schema.alterTable('settings').addColumn('note', dialect.columns.text),
    db.updateTable('settings').set({ note: 'migrated' }),
  ],
};

export const nextMigrations: readonly Migration[] = [...migrations, oneMore];
