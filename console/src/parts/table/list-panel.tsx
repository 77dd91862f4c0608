import type { ReactNode } from 'react';
import { Button } from '../button.tsx';
import { Failure, SkeletonRows } from '../states.tsx';

/** The part of a query that a list shows while it loads or after it failed. */
export interface Loading {
  readonly isPending: boolean;
  readonly isError: boolean;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** The part of an infinite query that loads the next page. */
export interface Paging {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

/** Fetches the next page if there is one and it is not being fetched. */
export function fetchMore({ hasNextPage, isFetchingNextPage, fetchNextPage }: Paging): void {
  if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
}

/** A list that fills its page: filters above, and the table, its placeholder, or the error below. */
export function ListPanel({
  filters,
  onClear,
  query,
  rows,
  children,
}: {
  readonly filters: ReactNode;
  /** Clears the filters; absent while none is set. */
  readonly onClear?: (() => void) | undefined;
  readonly query: Loading;
  /** Number of placeholder rows while loading. */
  readonly rows: number;
  readonly children: ReactNode;
}) {
  return (
    <div className="flex h-full min-h-0 flex-col rounded-lg border bg-surface">
      <div className="flex flex-wrap items-end gap-2 border-b p-2.5">
        {filters}
        {onClear !== undefined && (
          <Button look="quiet" onClick={onClear}>
            Clear
          </Button>
        )}
      </div>
      <div className="min-h-0 flex-1">
        {query.isPending ? (
          <SkeletonRows rows={rows} />
        ) : query.isError ? (
          <Failure error={query.error} retry={() => void query.refetch()} />
        ) : (
          children
        )}
      </div>
    </div>
  );
}
