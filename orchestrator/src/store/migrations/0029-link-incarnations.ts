import type { Migration } from './migration.ts';

/** Adds a column for the process that has the newest link to each agent. Only this process may write for the agent. */
export const linkIncarnations: Migration = {
  version: 29,
  name: 'link incarnations',
  statements: ({ db, dialect }) => [db.schema.alterTable('agents').addColumn('link_incarnation', dialect.columns.text)],
};
