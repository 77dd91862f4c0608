import type { Run } from '@muster/protocol/http';
import { useQueries } from '@tanstack/react-query';
import { queryClient } from '../../api/query-client.ts';
import { cancelWholeRun, runQuery } from '../../api/runs.ts';
import { type RunSubject, startRunOf } from './run-subject.ts';
import { usePlanRequest } from './use-plan-request.ts';

/** A subject and the run that plans it. */
export interface PlannedSubject {
  readonly subject: RunSubject;
  /** Null while loading. */
  readonly run: Run | null;
}

interface StartedPlan {
  readonly subject: RunSubject;
  readonly run_id: string;
}

function cancelAll(started: readonly StartedPlan[]): void {
  for (const { run_id } of started)
    if (queryClient.getQueryData<Run>(runQuery(run_id).queryKey)?.finished_at === null)
      void cancelWholeRun(run_id).catch(() => {
        // The run has already ended.
      });
}

/**
 * Plans several agents when a dialog opens, and follows the plans.
 * @param loadSubjects returns the subjects to plan, each of which needs its own run
 * @param given an existing plan to use instead of new ones
 */
export function useRunPlans(
  loadSubjects: () => Promise<readonly RunSubject[]>,
  given: { readonly subject: RunSubject; readonly run: Run } | null,
) {
  const { request, again, abandon } = usePlanRequest(
    given !== null,
    async (closed) => {
      const started: StartedPlan[] = [];
      for (const subject of await loadSubjects())
        if (!closed.aborted) started.push({ subject, run_id: (await startRunOf(subject, 'plan')).run_id });
      return started;
    },
    cancelAll,
  );
  const followed: readonly StartedPlan[] =
    request.isIdle && given !== null ? [{ subject: given.subject, run_id: given.run.run_id }] : (request.data ?? []);
  const queries = useQueries({ queries: followed.map(({ run_id }) => runQuery(run_id)) });
  const plans = followed.map(({ subject }, index): PlannedSubject => ({ subject, run: queries[index]?.data ?? null }));
  return {
    plans,
    /** Whether all plans have ended. */
    isPlanned: plans.length > 0 && plans.every(({ run }) => run !== null && run.finished_at !== null),
    error: request.error ?? queries.find(({ error }) => error !== null)?.error ?? null,
    again,
    /** Cancels the plans that are running and that this dialog started. */
    abandon,
  };
}
