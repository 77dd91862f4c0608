import type { InfiniteData, Query, QueryClient } from '@tanstack/query-core';
import type { Key } from '../query-keys.ts';

/**
 * Marks answers as stale:
 * - A pending answer may be older than the event. It is not aborted, which could repeat forever, but fetched once more when
 *   it has arrived.
 * - A large answer, such as a run over ten thousand agents, is fetched again only after a rest in proportion to its size, so
 *   that a stream of events does not overload either side.
 * - An answer that was requested after the event includes it and stays fresh.
 */

/** The `meta` of a paged list, newest first. If more than one page is loaded, it is not fetched again but shown as stale. */
export const newestFirst = { newestFirst: true } as const;

/** Answers with fewer entries need no rest. */
const manyEntries = 1_000;
const restPerEntryMs = 1;
/** Each page of a paged list is a request. */
const restPerPageMs = 1_000;
const maxRestMs = 15_000;

/** The number of entries of an answer: a list, a paged list, or the longest list of a record. */
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

/** @returns the milliseconds before this answer may be fetched again */
export function restAfter(data: unknown): number {
  const entries = entriesOf(data);
  const pages = (data as { pages?: readonly unknown[] } | null | undefined)?.pages?.length ?? 1;
  const rest = (entries < manyEntries ? 0 : entries * restPerEntryMs) + (pages - 1) * restPerPageMs;
  return Math.min(maxRestMs, rest);
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

/** @param since time of the event, in monotonic milliseconds; now by default */
export type MarkStale = (key: Key, since?: number) => void;

/** @returns a function that marks all answers whose key starts with a key */
export function createStaleMarker(client: QueryClient, { now, after }: MarkerClock = tabClock): MarkStale {
  const cache = client.getQueryCache();
  const again = new Set<Query>();
  const restsUntil = new WeakMap<Query, number>();
  const resting = new WeakSet<Query>();
  /** Time of the last request for the whole answer, which includes earlier changes. */
  const requestedAt = new WeakMap<Query, number>();

  const isCached = (query: Query): boolean => cache.get(query.queryHash) === query;

  const invalidate = (query: Query, refetchType: 'active' | 'none'): void => {
    void client.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType });
  };

  const includes = (query: Query, since: number): boolean =>
    (requestedAt.get(query) ?? Number.NEGATIVE_INFINITY) > since && query.state.status !== 'error';

  const mark = (query: Query): void => {
    const left = (restsUntil.get(query) ?? 0) - now();
    if (query.state.fetchStatus !== 'idle') again.add(query);
    else if (hasLaterPages(query)) invalidate(query, 'none');
    else if (left <= 0 || !query.isActive()) invalidate(query, 'active');
    else {
      // A page that opens during the rest fetches the answer immediately.
      invalidate(query, 'none');
      if (!resting.has(query)) rest(query, left);
    }
  };
  const rest = (query: Query, ms: number): void => {
    resting.add(query);
    after(ms, () => {
      resting.delete(query);
      if (isCached(query)) mark(query);
    });
  };

  cache.subscribe((event) => {
    const { query } = event;
    if (event.type === 'removed') again.delete(query);
    if (event.type !== 'updated') return;
    // Fetching the next page does not refresh the pages before it.
    if (event.action.type === 'fetch' && event.action.meta?.fetchMore === undefined) requestedAt.set(query, now());
    if (event.action.type === 'success' && event.action.manual !== true)
      restsUntil.set(query, now() + restAfter(query.state.data));
    if (query.state.fetchStatus === 'idle' && again.delete(query))
      // Runs in a microtask, because the cache is still notifying its subscribers.
      queueMicrotask(() => isCached(query) && mark(query));
  });

  return (key, since = Number.POSITIVE_INFINITY) => {
    for (const query of cache.findAll({ queryKey: key })) if (!includes(query, since)) mark(query);
  };
}
