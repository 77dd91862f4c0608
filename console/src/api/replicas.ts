import { listReplicas } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

/** Replicas start and end without events, so this query polls while a page shows it. */
export const replicasQuery = queryOptions({
  queryKey: keys.replicas,
  queryFn: ({ signal }) => call(listReplicas, { signal }),
  refetchInterval: 30_000,
});
