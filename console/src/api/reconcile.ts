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
