import { ApiError } from '@muster/protocol/client';
import { QueryClient } from '@tanstack/query-core';
import { session, Unreachable } from './client.ts';
import { createMarks } from './live/query-invalidation.ts';

/** Worth another try by itself: nobody answered, or whoever did asked to come back. */
function isPassing(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  return error instanceof ApiError && [429, 502, 503].includes(error.problem.status);
}

/** Milliseconds until the next try. */
function waitBefore(attempt: number, error: unknown): number {
  if (error instanceof ApiError && error.retryAfter !== null) return error.retryAfter * 1000;
  return Math.min(500 * 2 ** attempt, 10_000);
}

/**
 * What is known of the orchestrator. An answer is good until the event stream says otherwise (live.ts), so nothing is
 * asked for twice and nothing is asked for by the clock.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      gcTime: 10 * 60_000,
      networkMode: 'always',
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (_, error) => isPassing(error),
      retryDelay: waitBefore,
    },
    // What changes something is sent once; a person decides whether again. What it was is kept no longer than it is on
    // the page: it may have been a secret.
    mutations: { networkMode: 'always', retry: false, gcTime: 0 },
  },
});

/** Marks all answers whose key begins so as stale; those that are looked at are asked for again. */
export const markStale = createMarks(queryClient);

session.onForget(() => queryClient.clear());
