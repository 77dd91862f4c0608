import { listReconcile, type OffReason } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export interface ReconcileFilter {
  readonly reason?: OffReason | '';
  /** A selector. */
  readonly filter?: string;
  readonly accepted?: boolean;
}

/** The reasons why an agent is out of sync, including accepted drift; null if there are none. */
export const offAgentQuery = (node_id: string) =>
  queryOptions({
    queryKey: [...keys.reconcile, 'agent', node_id],
    queryFn: async ({ signal }) => {
      const [agent] = await call(listReconcile, { query: { agent: node_id, include_accepted: 'true' }, signal });
      return agent ?? null;
    },
  });

/** All agents that are out of sync, the most urgent first. */
export const reconcileQuery = ({ reason = '', filter = '', accepted = false }: ReconcileFilter = {}) =>
  queryOptions({
    queryKey: [...keys.reconcile, reason, filter, accepted],
    queryFn: ({ signal }) =>
      call(listReconcile, {
        query: {
          limit: 500,
          ...(reason === '' ? {} : { reason }),
          ...(filter === '' ? {} : { filter }),
          ...(accepted ? { include_accepted: 'true' } : {}),
        } as never,
        all: true,
        signal,
      }),
  });
