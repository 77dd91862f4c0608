import type { Run } from '@muster/protocol/http';
import { useMutation, useQueries } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { cancelWholeRun, runQuery } from '../../api/runs.ts';
import { type RunSubject, startRunOf } from './run-subject.ts';

/** Interval in milliseconds. Events announce changes sooner, unless they arrive before the response to the request. */
const pollMs = 10_000;

/** A subject and the run that plans it. */
export interface PlannedSubject {
  readonly subject: RunSubject;
  /** Null while loading. */
  readonly run: Run | null;
}

/**
 * Plans several agents when a dialog opens, and follows the plans.
 * @param loadSubjects returns what to plan; each subject needs its own run
 * @param given a plan that exists, to use instead of new ones
 */
export function useRunPlans(
  loadSubjects: () => Promise<readonly RunSubject[]>,
  given: { readonly subject: RunSubject; readonly run: Run } | null,
) {
  const request = useMutation({
    mutationFn: async () => {
      const started: { subject: RunSubject; run_id: string }[] = [];
      for (const subject of await loadSubjects())
        started.push({ subject, run_id: (await startRunOf(subject, 'plan')).run_id });
      return started;
    },
  });
  const { mutate } = request;
  const isStarted = useRef(given !== null);
  useEffect(() => {
    // React runs effects twice in development.
    if (isStarted.current) return;
    isStarted.current = true;
    mutate();
  }, [mutate]);
  const followed =
    request.isIdle && given !== null ? [{ subject: given.subject, run_id: given.run.run_id }] : (request.data ?? []);
  const queries = useQueries({
    queries: followed.map(({ run_id }) => ({
      ...runQuery(run_id),
      refetchInterval: ({ state: { data } }: { state: { data: Run | undefined } }) =>
        data?.finished_at === null ? pollMs : false,
    })),
  });
  const plans = followed.map(({ subject }, index): PlannedSubject => ({ subject, run: queries[index]?.data ?? null }));
  return {
    plans,
    /** Whether all plans have ended. */
    isPlanned: plans.length > 0 && plans.every(({ run }) => run !== null && run.finished_at !== null),
    error: request.error ?? queries.find(({ error }) => error !== null)?.error ?? null,
    again: () => mutate(),
    /** Cancels the plans that are running and that this dialog started. */
    abandon: () => {
      if (request.isIdle) return;
      for (const { run } of plans)
        if (run?.finished_at === null)
          void cancelWholeRun(run.run_id).catch(() => {
            // The run has ended in the meantime.
          });
    },
  };
}
