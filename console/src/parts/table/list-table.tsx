import { type ReactNode, useMemo } from 'react';
import { Button } from '../button.tsx';
import { classNames } from '../class-names.ts';
import { Empty, Failure, SkeletonRows } from '../states.tsx';
import { DataTable, type DataTableProps } from './data-table.tsx';
import { type Filter, FilterFields, type FilterTexts, useClearFilters, useFilterValues } from './filters.tsx';
import { useSorting } from './sorting.ts';

/** A query's state. The optional fields are set for a paged query. */
export interface ListQuery {
  readonly isPending: boolean;
  readonly isError: boolean;
  readonly error: unknown;
  readonly refetch: () => unknown;
  readonly hasNextPage?: boolean;
  readonly isFetchingNextPage?: boolean;
  readonly fetchNextPage?: () => unknown;
}

type TableProps<Row> = Pick<
  DataTableProps<Row>,
  'label' | 'columns' | 'rowKey' | 'rowLabel' | 'onOpen' | 'fill' | 'chosen' | 'onChoose' | 'details'
>;

/** `filters`, `columns`, and `matches` must be the same objects in every render. */
export interface ListTableProps<Row> extends TableProps<Row> {
  readonly query: ListQuery;
  /** Undefined while loading. */
  readonly rows: readonly Row[] | undefined;
  readonly filters?: readonly Filter[];
  /** Buttons at the end of the line of filters, for all rows or for the selected ones. */
  readonly toolbar?: ReactNode;
  /** Filters rows in the browser. If absent, the orchestrator filters them. */
  readonly matches?: (row: Row, values: FilterTexts) => boolean;
  /** Column to sort by initially. If absent, rows keep their order. */
  readonly sortedBy?: string;
  /** Shown if the list is empty. */
  readonly empty: ReactNode;
  /** Shown if no row matches the filters. */
  readonly noMatch?: string;
}

const noFilters: readonly Filter[] = [];
const noRows: readonly never[] = [];

/**
 * A table with filters. Shows whether rows are loading, failed to load, do not exist, or do not match, and loads more
 * pages on scrolling.
 */
export function ListTable<Row>({
  query,
  rows = noRows,
  filters = noFilters,
  toolbar,
  matches,
  sortedBy,
  empty,
  noMatch = '',
  ...table
}: ListTableProps<Row>) {
  const values = useFilterValues(filters);
  const clear = useClearFilters(filters);
  const [sorting, setSorting] = useSorting({ column: sortedBy ?? '', descending: false });
  const shown = useMemo(
    () => (matches === undefined ? rows : rows.filter((row) => matches(row, values))),
    [rows, matches, values],
  );
  return (
    <div className={classNames('flex min-h-0 flex-col gap-3', table.fill && 'h-full')}>
      {filters.length > 0 && (
        <div className="flex flex-wrap items-end gap-2">
          <FilterFields filters={filters} instant={matches !== undefined} />
          {clear !== undefined && (
            <Button look="quiet" onClick={clear}>
              Clear filters
            </Button>
          )}
          {toolbar !== undefined && (
            <div className="ml-auto flex flex-wrap items-center gap-2 empty:hidden">{toolbar}</div>
          )}
        </div>
      )}
      <div className="min-h-0 overflow-hidden rounded-lg border bg-surface">
        {query.isPending ? (
          <SkeletonRows rows={12} />
        ) : query.isError ? (
          <Failure error={query.error} retry={() => void query.refetch()} />
        ) : (
          <DataTable
            {...table}
            rows={shown}
            {...(sortedBy === undefined ? {} : { sorting, onSort: setSorting })}
            onNearEnd={() => loadNextPage(query)}
            empty={
              clear === undefined ? (
                empty
              ) : (
                <Empty title={noMatch} action={<Button onClick={clear}>Clear filters</Button>} />
              )
            }
          />
        )}
      </div>
    </div>
  );
}

/** Loads the next page unless there is none or one is already loading. */
export function loadNextPage({ hasNextPage, isFetchingNextPage, fetchNextPage }: ListQuery): void {
  if (hasNextPage && !isFetchingNextPage) fetchNextPage?.();
}
