import { ApiError, type CallSettings } from '@muster/protocol/client';
import type { CallOf, Route } from '@muster/protocol/http';
import { QueryClient } from '@tanstack/query-core';
import { call, session, Unreachable } from './client.ts';
import { createStaleMarker } from './live/query-invalidation.ts';
import type { Key } from './query-keys.ts';

/** Reports whether to retry automatically: if there was no response, or if the response asks to retry later. */
function isTransient(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  return error instanceof ApiError && [429, 502, 503].includes(error.problem.status);
}

/** Returns the delay in milliseconds. */
function retryDelay(attempt: number, error: unknown): number {
  if (error instanceof ApiError && error.retryAfter !== null) return error.retryAfter * 1000;
  return Math.min(500 * 2 ** attempt, 10_000);
}

/**
 * Cached responses from the orchestrator. They stay fresh until an event marks them as stale (live/outdated-keys.ts), so by
 * default nothing is polled.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 10 * 60_000,
      networkMode: 'always',
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (_, error) => isTransient(error),
      retryDelay,
    },
    // A mutation is sent only once; the operator decides whether to repeat it. Its input is not cached, because it may
    // be a secret.
    mutations: { networkMode: 'always', retry: false, gcTime: 0 },
  },
});

/** Returns the options of a query whose data is the response of a route. */
export const routeQuery = <R extends Route>(queryKey: Key, route: R, request: CallOf<R> & CallSettings) => ({
  queryKey,
  queryFn: ({ signal }: { signal: AbortSignal }) => call(route, { ...request, signal }),
});

/** Marks all queries whose key starts with the given key as stale, and fetches the ones in use again. */
export const markStale = createStaleMarker(queryClient);

/**
 * Caches the response to a write as stale. The event for a later change may arrive before the response, so a page that
 * shows the response fetches it again.
 */
export function cacheAnswer<T>(key: Key, answer: T): void {
  queryClient.setQueryData<unknown>(key, answer);
  markStale(key);
}

session.onForget(() => queryClient.clear());
