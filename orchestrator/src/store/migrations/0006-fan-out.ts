import { sql } from 'kysely';
import type { Migration, MigrationBuild } from './migration.ts';
import { createIndex, createTable } from './table.ts';

const addText = ({ db, dialect }: MigrationBuild, table: string, column: string) =>
  db.schema.alterTable(table).addColumn(column, dialect.columns.text);

/** What a run needs to halt, wait and be bound to a plan. */
export const fanOut: Migration = {
  version: 6,
  name: 'fan-out',
  statements: (build) => {
    const { db, dialect } = build;
    return [
      // What a run was about when it was asked for: assignments and revisions. It goes on by them, whenever.
      createTable(build, 'run_bases', {
        columns: { run_id: 'text', basis: 'text' },
        primaryKey: ['run_id'],
        childOf: { column: 'run_id', table: 'runs' },
      }),
      // In which order agents get their turn; the canaries come first.
      db.schema.alterTable('run_results').addColumn('position', dialect.columns.integer),
      createIndex(build, 'run_results_position', 'run_results', ['run_id', 'position']),
      // A halted or cancelled run is open until the last agent that has an operation of it has ended that.
      createIndex(build, 'runs_open', 'runs', ['run_id']).where('finished_at', 'is', null),
      createIndex(build, 'runs_assignment', 'runs', ['assignment', 'run_id']),
      // What was asked for, which the desired set no longer tells.
      addText(build, 'operations', 'requested_modules'),
      // Of a plan: what it would do, as its agent sums it up, and the versions of the secrets that it names.
      addText(build, 'operations', 'plan_digest'),
      addText(build, 'operations', 'secret_versions'),
      // An earlier release left these behind when it was killed, and never came back to them.
      db
        .updateTable('run_results')
        .set({ status: 'failed', error: 'the orchestrator stopped before this agent’s turn' })
        .where('status', '=', sql.lit('queued'))
        .where('operation_id', 'is', null),
    ];
  },
};
