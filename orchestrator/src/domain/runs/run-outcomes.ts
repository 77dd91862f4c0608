import type { RunOutcomes } from '@muster/protocol/http';
import { runOutcomeCounts } from '../../store/queries/runs.ts';
import type { Context } from '../shared/context.ts';

export const noOutcomes: RunOutcomes = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0, running: 0, waiting: 0 };

/** Returns the name under which to count an agent's outcome. */
function outcomeOf(status: string, hasOperation: boolean): keyof RunOutcomes {
  switch (status) {
    case 'waiting':
    case 'succeeded':
      return status;
    case 'queued':
    case 'running':
      return 'running';
    case 'cancelled':
      return hasOperation ? 'cancelled' : 'skipped';
    default:
      return 'failed';
  }
}

/** Counts the agents of runs by outcome. Reads all outcomes of the runs. */
export async function countOutcomes(
  { db }: Context,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, RunOutcomes>> {
  const counts = new Map(runIds.map((id) => [id, { ...noOutcomes }]));
  if (runIds.length === 0) return counts;
  for (const { run_id, status, has_operation, count } of await db.all(runOutcomeCounts, { run_ids: runIds })) {
    const of = counts.get(run_id);
    if (of !== undefined) of[outcomeOf(status, has_operation === 1)] += Number(count);
  }
  return counts;
}
