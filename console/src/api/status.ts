import { getHealth, getStatus } from '@muster/protocol/http';
import { queryOptions } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './query-keys.ts';

/** Changes in the orchestrator's health cause no events, so these queries poll while a page shows them. */

export const healthQuery = queryOptions({
  queryKey: keys.health,
  queryFn: ({ signal }) => call(getHealth, { signal }),
  refetchInterval: 30_000,
});

export const statusQuery = queryOptions({
  queryKey: keys.status,
  queryFn: ({ signal }) => call(getStatus, { signal }),
  refetchInterval: 30_000,
});
