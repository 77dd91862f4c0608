import type { QueryClient } from '@tanstack/query-core';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useSyncExternalStore } from 'react';

/** Number of failed attempts after which an operator should see why the page is incomplete. */
const minFailures = 3;

/** Returns the newest error of a query that the page shows and that was retried several times; otherwise null. */
const failureIn = (client: QueryClient): Error | null =>
  client
    .getQueryCache()
    .getAll()
    .find(
      (query) =>
        query.state.fetchFailureCount >= minFailures && query.state.fetchStatus === 'fetching' && query.isActive(),
    )?.state.fetchFailureReason ?? null;

/**
 * Returns why the page's requests fail repeatedly while the console retries them; null if no request fails repeatedly.
 */
export function useRepeatedFailure(): Error | null {
  const client = useQueryClient();
  const subscribe = useCallback((listener: () => void) => client.getQueryCache().subscribe(listener), [client]);
  return useSyncExternalStore(subscribe, () => failureIn(client));
}
