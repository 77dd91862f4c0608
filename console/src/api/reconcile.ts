import { listReconcile } from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { queryOptions } from '@tanstack/react-query';
import type { OffFinding } from '../../../client/src/reason-words.ts';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

export interface ReconcileFilter {
  readonly reason?: OffFinding | '';
  /** A selector. */
  readonly filter?: string;
  readonly accepted?: boolean;
}

/** Reasons why an agent is out of sync or outdated, including accepted drift; null if there are none. */
export const offAgentQuery = (node_id: string) =>
  queryOptions({
    queryKey: [...keys.reconcile, 'agent', node_id],
    queryFn: async ({ signal }) => {
      const query = { agent: node_id, include_accepted: 'true', include_outdated: 'true' } as const;
      const [agent] = await call(listReconcile, { query, signal });
      return agent ?? null;
    },
  });

/** All agents that are out of sync or outdated, or whose drift was accepted, the most urgent first. */
export const allReconcileQuery = queryOptions({
  queryKey: [...keys.reconcile, 'all'],
  queryFn: ({ signal }) =>
    call(listReconcile, {
      query: { limit: 500, include_accepted: 'true', include_outdated: 'true' } as never,
      all: true,
      signal,
    }),
});

/** All agents that are out of sync or outdated, the most urgent first. */
export const reconcileQuery = ({ reason = '', filter = '', accepted = false }: ReconcileFilter = {}) =>
  queryOptions({
    queryKey: [...keys.reconcile, reason, filter, accepted],
    queryFn: async ({ signal }) => {
      const agents = await call(listReconcile, {
        query: {
          limit: 500,
          ...(reason === '' || reason === 'outdated' ? {} : { reason }),
          ...(filter === '' ? {} : { filter }),
          ...(accepted ? { include_accepted: 'true' } : { include_outdated: 'true' }),
        } as never,
        all: true,
        signal,
      });
      return reason === 'outdated' ? agents.filter((agent) => syncStateOf(agent, true) === 'outdated') : agents;
    },
  });
