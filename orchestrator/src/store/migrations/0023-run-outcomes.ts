import type { Migration } from './migration.ts';

/** The outcome statuses that each column of `runs` counts. */
const ended = { succeeded: ['succeeded'], failed: ['failed', 'interrupted', 'expired'] } as const;

/**
 * Adds columns to runs for the number of agents with each outcome, so that listing runs does not read outcomes. The
 * columns are null until the run has ended.
 */
export const runOutcomes: Migration = {
  version: 23,
  name: 'run outcomes',
  statements: ({ db, dialect }) => [
    ...['succeeded', 'failed', 'cancelled', 'skipped'].map((name) =>
      db.schema.alterTable('runs').addColumn(name, dialect.columns.integer),
    ),
    db
      .updateTable('runs')
      .set((e) => {
        const results = () =>
          e
            .selectFrom('run_results')
            .select((f) => f.fn.countAll().as('count'))
            .whereRef('run_results.run_id', '=', 'runs.run_id');
        const cancelled = () => results().where('run_results.status', '=', 'cancelled');
        return {
          succeeded: results().where('run_results.status', 'in', ended.succeeded),
          failed: results().where('run_results.status', 'in', ended.failed),
          cancelled: cancelled().where('run_results.operation_id', 'is not', null),
          skipped: cancelled().where('run_results.operation_id', 'is', null),
        };
      })
      .where('finished_at', 'is not', null),
  ],
};
