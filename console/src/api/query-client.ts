import { ApiError } from '@muster/protocol/client';
import { QueryClient } from '@tanstack/query-core';
import { session, Unreachable } from './client.ts';
import { createStaleMarker } from './live/query-invalidation.ts';

/** Whether to retry automatically: no answer, or an answer that asks to try again later. */
function isTransient(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  return error instanceof ApiError && [429, 502, 503].includes(error.problem.status);
}

/** @returns milliseconds */
function retryDelay(attempt: number, error: unknown): number {
  if (error instanceof ApiError && error.retryAfter !== null) return error.retryAfter * 1000;
  return Math.min(500 * 2 ** attempt, 10_000);
}

/** Answers of the orchestrator. They stay fresh until an event marks them stale (live/stale.ts); nothing is polled. */
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
    // A change is sent once; the operator decides whether to repeat it. Its input may be a secret, so it is not cached.
    mutations: { networkMode: 'always', retry: false, gcTime: 0 },
  },
});

/** Marks all answers whose key starts with this key as stale, and fetches used answers again. */
export const markStale = createStaleMarker(queryClient);

session.onForget(() => queryClient.clear());
