import type { InfiniteData, Query, QueryClient } from '@tanstack/query-core';
import type { Key } from '../query-keys.ts';

/**
 * Marks answers as stale. One that is on its way may have been read before what made it stale: it is neither called off,
 * which could go on for ever, nor believed, but asked for once more when it is there. A large
 * answer, such as a run over ten thousand agents, is left in peace in proportion, so that no stream of events keeps either
 * end busy with it. One that was asked for after the news came knows of it, and stays as it is.
 */

/** In the `meta` of a list that is read in pages, newest first: whoever has read further down is only told that there is more. */
export const newestFirst = { newestFirst: true } as const;

/** Answers with fewer entries are asked for as often as events tell of them. */
const manyEntries = 1_000;
const restPerEntryMs = 1;
/** A list in pages is read page by page. */
const restPerPageMs = 1_000;
const longestRestMs = 15_000;

/** How many there are in an answer: a list, a list in pages, or the longest list of a record. */
function entriesOf(data: unknown): number {
  if (Array.isArray(data)) return data.length;
  if (typeof data !== 'object' || data === null) return 0;
  const { pages } = data as { pages?: unknown };
  if (Array.isArray(pages)) return pages.reduce((sum: number, page) => sum + entriesOf(page), 0);
  return Object.values(data).reduce(
    (most: number, value) => (Array.isArray(value) ? Math.max(most, value.length) : most),
    0,
  );
}

/** For so many milliseconds it is not asked for again. */
export function restAfter(data: unknown): number {
  const entries = entriesOf(data);
  const pages = (data as { pages?: readonly unknown[] } | null | undefined)?.pages?.length ?? 1;
  const rest = (entries < manyEntries ? 0 : entries * restPerEntryMs) + (pages - 1) * restPerPageMs;
  return Math.min(longestRestMs, rest);
}

const isReadFurther = ({ meta, state }: Query): boolean =>
  meta?.newestFirst === true && ((state.data as InfiniteData<unknown> | undefined)?.pages.length ?? 0) > 1;

export interface MarksClock {
  /** Milliseconds, from whenever. */
  readonly now: () => number;
  readonly after: (ms: number, act: () => void) => void;
}

const clockOfTab: MarksClock = {
  now: () => performance.now(),
  after: (ms, act) => void setTimeout(act, ms),
};

/** @param since when the news came that make it stale, by the clock of the tab; left out: now */
export type Mark = (key: Key, since?: number) => void;

/** @returns what marks all whose key begins so */
export function createMarks(client: QueryClient, { now, after }: MarksClock = clockOfTab): Mark {
  const cache = client.getQueryCache();
  const again = new Set<Query>();
  const restsUntil = new WeakMap<Query, number>();
  const resting = new WeakSet<Query>();
  /** When it was last asked for whole: what came before then is in the answer. */
  const askedAt = new WeakMap<Query, number>();

  const isThere = (query: Query): boolean => cache.get(query.queryHash) === query;

  const invalidate = (query: Query, refetchType: 'active' | 'none'): void => {
    void client.invalidateQueries({ queryKey: query.queryKey, exact: true, refetchType });
  };

  const knows = (query: Query, since: number): boolean =>
    (askedAt.get(query) ?? Number.NEGATIVE_INFINITY) > since && query.state.status !== 'error';

  const mark = (query: Query): void => {
    const left = (restsUntil.get(query) ?? 0) - now();
    if (query.state.fetchStatus !== 'idle') again.add(query);
    else if (isReadFurther(query)) invalidate(query, 'none');
    else if (left <= 0 || !query.isActive()) invalidate(query, 'active');
    else {
      // Whoever comes to look at it asks at once.
      invalidate(query, 'none');
      if (!resting.has(query)) rest(query, left);
    }
  };
  const rest = (query: Query, ms: number): void => {
    resting.add(query);
    after(ms, () => {
      resting.delete(query);
      if (isThere(query)) mark(query);
    });
  };

  cache.subscribe((event) => {
    const { query } = event;
    if (event.type === 'removed') again.delete(query);
    if (event.type !== 'updated') return;
    // Reading on in a list leaves what was read before as old as it was.
    if (event.action.type === 'fetch' && event.action.meta?.fetchMore === undefined) askedAt.set(query, now());
    if (event.action.type === 'success' && event.action.manual !== true)
      restsUntil.set(query, now() + restAfter(query.state.data));
    if (query.state.fetchStatus === 'idle' && again.delete(query))
      // Not in the middle of being told.
      queueMicrotask(() => isThere(query) && mark(query));
  });

  return (key, since = Number.POSITIVE_INFINITY) => {
    for (const query of cache.findAll({ queryKey: key })) if (!knows(query, since)) mark(query);
  };
}
