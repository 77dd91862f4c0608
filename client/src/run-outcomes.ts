import type { Run, RunOutcomes } from '@muster/protocol/http';

/** Words for the outcomes of a run's agents, the same in the console and the CLI. */

export type RunOutcome = keyof RunOutcomes;

/** The outcomes in the order in which operators need them. */
export const runOutcomeOrder: readonly RunOutcome[] = [
  'failed',
  'cancelled',
  'skipped',
  'running',
  'waiting',
  'succeeded',
];

/** Returns an agent's outcome. An agent that the run did not reach is skipped. */
export function runOutcomeOf({
  status,
  operation_id,
}: Pick<Run['results'][number], 'status' | 'operation_id'>): RunOutcome {
  switch (status) {
    case 'succeeded':
    case 'running':
      return status;
    case 'queued':
      return operation_id === null ? 'waiting' : 'running';
    case 'cancelled':
      return operation_id === null ? 'skipped' : 'cancelled';
    default:
      return 'failed';
  }
}

/** Returns for example `1 failed, 1 skipped, 18 succeeded`. Empty for a run without agents. */
export const runOutcomesText = (outcomes: RunOutcomes): string =>
  runOutcomeOrder
    .filter((outcome) => outcomes[outcome] > 0)
    .map((outcome) => `${outcomes[outcome]} ${outcome}`)
    .join(', ');
