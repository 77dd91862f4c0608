import { sql } from 'kysely';
import { createIndex, createTable } from '../../create-table.ts';
import type { Migration, MigrationBuild } from '../migration.ts';

const addText = ({ db, dialect }: MigrationBuild, table: string, column: string) =>
  db.schema.alterTable(table).addColumn(column, dialect.columns.text);

/** Adds columns for runs that can be halted, that wait, or that are bound to plans. */
export const fanOut: Migration = {
  version: 6,
  name: 'fan-out',
  statements: (build) => {
    const { db, dialect } = build;
    return [
      // The assignments and revisions at the start of a run, which the run uses until it ends.
      createTable(build, 'run_bases', {
        columns: { run_id: 'text', basis: 'text' },
        primaryKey: ['run_id'],
        childOf: { column: 'run_id', table: 'runs' },
      }),
      // The order in which the run reaches agents, canaries first.
      db.schema.alterTable('run_results').addColumn('position', dialect.columns.integer),
      createIndex(build, 'run_results_position', 'run_results', ['run_id', 'position']),
      // A halted or canceled run is open until its last operation ends.
      createIndex(build, 'runs_open', 'runs', ['run_id']).where('finished_at', 'is', null),
      createIndex(build, 'runs_assignment', 'runs', ['assignment', 'run_id']),
      // Needed because the desired state does not show which modules were specified in the request.
      addText(build, 'operations', 'requested_modules'),
      // For a plan, the digest of its changes, and the versions of the secrets that it uses.
      addText(build, 'operations', 'plan_digest'),
      addText(build, 'operations', 'secret_versions'),
      // Records as failed the outcomes that an earlier release left open when it was killed.
      db
        .updateTable('run_results')
        .set({ status: 'failed', error: 'the orchestrator stopped before this agent’s turn' })
        .where('status', '=', sql.lit('queued'))
        .where('operation_id', 'is', null),
    ];
  },
};
