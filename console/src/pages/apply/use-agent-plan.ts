import type { Operation } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { cancel, operationQuery, startPlan } from '../../api/operations.ts';
import { queryClient } from '../../api/query-client.ts';
import { hasEnded } from '../../parts/work-status.tsx';
import { usePlanRequest } from './use-plan-request.ts';

function cancelPlan(id: string): void {
  const plan = queryClient.getQueryData<Operation>(operationQuery(id).queryKey);
  if (plan !== undefined && !hasEnded(plan.status))
    void cancel(id).catch(() => {
      // The plan has already ended.
    });
}

/**
 * Plans an agent when a dialog opens, and follows the plan.
 * @param loadModules returns the modules to plan in addition to those from assignments
 * @param given an existing plan to use instead of a new one
 */
export function useAgentPlan(node_id: string, loadModules: () => Promise<readonly string[]>, given: Operation | null) {
  const { request, again, abandon } = usePlanRequest(
    given !== null,
    async (closed) => {
      const modules = await loadModules();
      return { modules, id: closed.aborted ? null : (await startPlan({ node_id, modules })).operation_id };
    },
    ({ id }) => id !== null && cancelPlan(id),
  );
  const id = request.isIdle ? given?.operation_id : (request.data?.id ?? undefined);
  const query = useQuery({ ...operationQuery(id ?? ''), enabled: id !== undefined });
  const plan = id === undefined ? null : (query.data ?? null);
  return {
    /** Null until the orchestrator has accepted the request. */
    plan,
    modules: request.data?.modules ?? [],
    error: request.error ?? (id === undefined ? null : query.error),
    again,
    /** Cancels the plan if it is running and this dialog started it. */
    abandon,
  };
}
