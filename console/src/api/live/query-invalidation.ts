import type { InfiniteData, Query, QueryClient } from '@tanstack/query-core';
import type { Key } from '../query-keys.ts';

/**
 * Marks queries as stale:
 * - A pending request may return data from before the event. It is not aborted, because a stream of events could then
 *   abort every request. Instead, the query is fetched again after the response has arrived.
 * - A large result, such as a run on ten thousand agents, is fetched again only after a delay that is proportional to its
 *   size, so that a stream of events overloads neither the browser nor the orchestrator.
 * - A result that was requested after the event includes the change and stays fresh.
 */

/**
 * Query `meta` for a paged list in newest-first order. If more than one page is loaded, an event marks the list as
 * stale without fetching it again.
 */
export const newestFirst = { newestFirst: true } as const;

/**
 * Query `meta` for a provisional result, which another query's result replaces. A provisional result may miss changes,
 * and is never marked as stale.
 */
export const provisional = { provisional: true } as const;

/** Reports whether any query has a result that is not provisional. */
export const hasAnswers = (client: QueryClient): boolean =>
  client
    .getQueryCache()
    .getAll()
    .some(
      ({ meta, state: { dataUpdatedAt, errorUpdatedAt } }) =>
        meta?.provisional !== true && (dataUpdatedAt > 0 || errorUpdatedAt > 0),
    );

/** Results with fewer entries than this are fetched again without delay. */
const manyEntries = 1_000;
const delayPerEntryMs = 1;
/** Each page of a paged list costs one request. */
const delayPerPageMs = 1_000;
const maxDelayMs = 15_000;

/** Returns the number of entries in a list or a paged list, or the length of the longest list in a record. */
function entriesOf(data: unknown): number {
  if (Array.isArray(data)) return data.length;
  if (typeof data !== 'object' || data === null) return 0;
  const { pages } = data as { pages?: unknown };
  if (Array.isArray(pages)) return pages.reduce((sum: number, page) => sum + entriesOf(page), 0);
  return Object.values(data).reduce(
    (longest: number, value) => (Array.isArray(value) ? Math.max(longest, value.length) : longest),
    0,
  );
}

/** Returns the minimum time in milliseconds before a result may be fetched again. */
export function refetchDelay(data: unknown): number {
  const entries = entriesOf(data);
  const pages = (data as { pages?: readonly unknown[] } | null | undefined)?.pages?.length ?? 1;
  const delay = (entries < manyEntries ? 0 : entries * delayPerEntryMs) + (pages - 1) * delayPerPageMs;
  return Math.min(maxDelayMs, delay);
}

const hasLaterPages = ({ meta, state }: Query): boolean =>
  meta?.newestFirst === true && ((state.data as InfiniteData<unknown> | undefined)?.pages.length ?? 0) > 1;

export interface MarkerClock {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly after: (ms: number, act: () => void) => void;
}

const tabClock: MarkerClock = {
  now: () => performance.now(),
  after: (ms, act) => void setTimeout(act, ms),
};

/** @param since time of the event in monotonic milliseconds; defaults to now */
export type MarkStale = (key: Key, since?: number) => void;

/** Returns a function that marks all queries whose key starts with the given key. */
export function createStaleMarker(client: QueryClient, { now, after }: MarkerClock = tabClock): MarkStale {
  const cache = client.getQueryCache();
  const again = new Set<Query>();
  const notBefore = new WeakMap<Query, number>();
  const delayed = new WeakSet<Query>();
  /** Time of the last request for the whole result. The result includes all earlier changes. */
  const requestedAt = new WeakMap<Query, number>();

  const isCached = (query: Query): boolean => cache.get(query.queryHash) === query;

  const invalidate = (query: Query, refetchType: 'active' | 'none'): void => {
    void client.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType });
  };

  const includes = (query: Query, since: number): boolean =>
    (requestedAt.get(query) ?? Number.NEGATIVE_INFINITY) > since && query.state.status !== 'error';

  const mark = (query: Query): void => {
    const left = (notBefore.get(query) ?? 0) - now();
    if (query.state.fetchStatus !== 'idle') again.add(query);
    else if (hasLaterPages(query)) invalidate(query, 'none');
    else if (left <= 0 || !query.isActive()) invalidate(query, 'active');
    else {
      // If a page starts to use the query during the delay, it fetches immediately.
      invalidate(query, 'none');
      if (!delayed.has(query)) markLater(query, left);
    }
  };
  const markLater = (query: Query, ms: number): void => {
    delayed.add(query);
    after(ms, () => {
      delayed.delete(query);
      if (isCached(query)) mark(query);
    });
  };

  cache.subscribe((event) => {
    const { query } = event;
    if (event.type === 'removed') again.delete(query);
    if (event.type !== 'updated') return;
    // Fetching the next page does not update the pages before it.
    if (event.action.type === 'fetch' && event.action.meta?.fetchMore === undefined) requestedAt.set(query, now());
    if (event.action.type === 'success' && event.action.manual !== true)
      notBefore.set(query, now() + refetchDelay(query.state.data));
    if (query.state.fetchStatus === 'idle' && again.delete(query))
      // Deferred to a microtask, because the cache has not finished notifying its subscribers.
      queueMicrotask(() => isCached(query) && mark(query));
  });

  return (key, since = Number.POSITIVE_INFINITY) => {
    for (const query of cache.findAll({ queryKey: key }))
      if (query.meta?.provisional !== true && !includes(query, since)) mark(query);
  };
}
