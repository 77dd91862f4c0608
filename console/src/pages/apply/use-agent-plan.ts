import type { Operation } from '@muster/protocol/http';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { cancel, operationQuery, startPlan } from '../../api/operations.ts';
import { hasEnded } from '../../parts/work-status.tsx';

/** Interval in milliseconds. Events announce the end sooner, unless they arrive before the response to the request. */
const pollMs = 2_000;

/**
 * Plans an agent when a dialog opens, and follows the plan.
 * @param loadModules returns the modules to plan in addition to those of assignments
 * @param given a plan that exists, to use instead of a new one
 */
export function useAgentPlan(node_id: string, loadModules: () => Promise<readonly string[]>, given: Operation | null) {
  const request = useMutation({
    mutationFn: async () => {
      const modules = await loadModules();
      return { modules, id: (await startPlan({ node_id, modules })).operation_id };
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
  const id = request.isIdle ? given?.operation_id : request.data?.id;
  const query = useQuery({
    ...operationQuery(id ?? ''),
    enabled: id !== undefined,
    refetchInterval: ({ state: { data } }) => (data !== undefined && hasEnded(data.status) ? false : pollMs),
  });
  const plan = id === undefined ? null : (query.data ?? null);
  return {
    /** Null until the orchestrator has accepted the request. */
    plan,
    modules: request.data?.modules ?? [],
    error: request.error ?? (id === undefined ? null : query.error),
    again: () => mutate(),
    /** Cancels the plan if it is running and this dialog started it. */
    abandon: () => {
      if (plan !== null && !request.isIdle && !hasEnded(plan.status))
        void cancel(plan.operation_id).catch(() => {
          // The plan has ended in the meantime.
        });
    },
  };
}
