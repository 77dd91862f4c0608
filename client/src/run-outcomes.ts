import type { Run, RunOutcomes } from '@muster/protocol/http';
import { statusText } from './status-text.ts';

/** Words for the outcomes of agents in a run, shared by the console and the CLI. */

export type RunOutcome = keyof RunOutcomes;

/** Outcomes, the most important for operators first. */
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

/** Returns a summary such as `1 failed, 1 skipped, 18 succeeded`; empty for a run without agents. */
export const runOutcomesText = (outcomes: RunOutcomes): string =>
  runOutcomeOrder
    .filter((outcome) => outcomes[outcome] > 0)
    .map((outcome) => `${outcomes[outcome]} ${statusText(outcome)}`)
    .join(', ');
