import type { ReactNode } from 'react';
import { Button } from '../button.tsx';
import { Failure, SkeletonRows } from '../states.tsx';

/** Of a query: how far it is, and how it is tried again. */
export interface Loading {
  readonly isPending: boolean;
  readonly isError: boolean;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

/** Of a query that is read in pages. */
export interface Paging {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

/** Reads on, where there is more and nobody does so already. */
export function fetchMore({ hasNextPage, isFetchingNextPage, fetchNextPage }: Paging): void {
  if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
}

/**
 * A list that has the height of its page: fields that narrow it, and below them the table, or in its place the shape of
 * it while it comes and what went wrong when it does not.
 */
export function ListPanel({
  filters,
  onClear,
  query,
  rows,
  children,
}: {
  readonly filters: ReactNode;
  /** Takes the filters away; left out while there are none. */
  readonly onClear?: (() => void) | undefined;
  readonly query: Loading;
  /** So many are drawn while they come. */
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
