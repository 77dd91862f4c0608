import type { InfiniteData, Query, QueryClient } from '@tanstack/react-query';
import type { Key } from './keys.ts';

/**
 * Marks answers as stale. One that is on its way may have been read before what made it stale: it is neither called off,
 * which could go on for ever, nor believed, but asked for once more when it is there.
 */

/** In the `meta` of a list that is read in pages, newest first: whoever has read further down is only told that there is more. */
export const newestFirst = { newestFirst: true } as const;

const isReadFurther = ({ meta, state }: Query): boolean =>
  meta?.newestFirst === true && ((state.data as InfiniteData<unknown> | undefined)?.pages.length ?? 0) > 1;

/** @returns what marks all whose key begins so */
export function createMarks(client: QueryClient): (key: Key) => void {
  const cache = client.getQueryCache();
  const again = new Set<Query>();

  const mark = (query: Query): void => {
    if (query.state.fetchStatus !== 'idle') again.add(query);
    else
      void client.invalidateQueries({
        ...{ queryKey: query.queryKey, exact: true },
        refetchType: isReadFurther(query) ? 'none' : 'active',
      });
  };

  cache.subscribe(({ type, query }) => {
    if (type === 'removed') again.delete(query);
    else if (type === 'updated' && query.state.fetchStatus === 'idle' && again.delete(query))
      // Not in the middle of being told.
      queueMicrotask(() => cache.get(query.queryHash) === query && mark(query));
  });

  return (key) => {
    for (const query of cache.findAll({ queryKey: key })) mark(query);
  };
}
