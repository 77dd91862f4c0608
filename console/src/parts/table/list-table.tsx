import { SearchX } from 'lucide-react';
import { type ReactNode, useMemo } from 'react';
import { Button } from '../button.tsx';
import { classNames } from '../class-names.ts';
import { Empty, Failure } from '../states.tsx';
import { allToggled } from './choosing.ts';
import type { Column, Sorting } from './column.ts';
import { DataTable, type DataTableProps } from './data-table.tsx';
import { type Filter, FilterFields, type FilterTexts, useClearFilters, useFilterValues } from './filters.tsx';
import { FilterButton, type SelectAll, SortMenu } from './phone-tools.tsx';
import { sortingOf, useSorting } from './sorting.ts';
import { TableSkeleton } from './table-skeleton.tsx';
import { useIsPhone } from './use-drawn-columns.ts';

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
  /** Column to sort by initially, after `-` if descending. If absent, rows keep their order. */
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
  const [sorting, setSorting] = useSorting(sortingOf(sortedBy ?? ''));
  const shown = useMemo(
    () => (matches === undefined ? rows : rows.filter((row) => matches(row, values))),
    [rows, matches, values],
  );
  // A list without rows has nothing to search, filter, or sort.
  const isEmpty = rows.length === 0 && clear === undefined && !query.isPending && !query.isError;
  const isPhone = useIsPhone();
  const { columns, chosen, onChoose, rowKey } = table;
  const onSort = sortedBy === undefined ? undefined : setSorting;
  const choose = useMemo(() => {
    if (!isPhone || chosen === undefined || onChoose === undefined) return null;
    const keys = shown.map(rowKey);
    return {
      all: keys.length > 0 && keys.every((key) => chosen.has(key)),
      toggle: () => onChoose(allToggled(keys, chosen)),
    };
  }, [isPhone, chosen, onChoose, shown, rowKey]);
  return (
    <div className={classNames('flex min-h-0 flex-col gap-3 max-sm:gap-2', table.fill && 'h-full')}>
      {isEmpty ? null : isPhone ? (
        <PhoneTools
          {...{ filters, columns, sorting, onSort, clear, toolbar, choose }}
          instant={matches !== undefined}
        />
      ) : (
        filters.length > 0 && (
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
        )
      )}
      <div className="min-h-0 overflow-hidden rounded-lg border bg-surface">
        {query.isPending ? (
          <TableSkeleton columns={columns} isSelectable={chosen !== undefined} />
        ) : query.isError ? (
          <Failure
            title={`${table.label} could not be loaded`}
            error={query.error}
            retry={() => void query.refetch()}
          />
        ) : isEmpty ? (
          empty
        ) : (
          <DataTable
            {...table}
            rows={shown}
            {...(onSort === undefined ? {} : { sorting, onSort })}
            onNearEnd={() => loadNextPage(query)}
            empty={
              clear === undefined ? (
                empty
              ) : (
                <Empty title={noMatch} icon={<SearchX />} action={<Button onClick={clear}>Clear filters</Button>}>
                  Try another search, or clear the filters.
                </Empty>
              )
            }
          />
        )}
      </div>
    </div>
  );
}

/** The tools of a list on a phone, in one line: the search, and buttons for the other filters and for the sort order. */
function PhoneTools<Row>({
  filters,
  instant,
  columns,
  sorting,
  onSort,
  clear,
  toolbar,
  choose,
}: {
  readonly filters: readonly Filter[];
  readonly instant: boolean;
  readonly columns: readonly Column<Row>[];
  readonly sorting: Sorting;
  /** Undefined if the rows keep their order. */
  readonly onSort: ((sorting: Sorting) => void) | undefined;
  readonly clear: (() => void) | undefined;
  readonly toolbar: ReactNode;
  readonly choose: SelectAll | null;
}) {
  const values: FilterTexts = useFilterValues(filters);
  const search = filters.filter((filter) => !('options' in filter)).slice(0, 1);
  const others = filters.filter((filter) => !search.includes(filter));
  // A list without filters is short, so it needs no other order.
  const isSortable = onSort !== undefined && filters.length > 0 && columns.some(({ sort }) => sort !== undefined);
  if (filters.length === 0 && toolbar === undefined) return null;
  return (
    <div className="flex flex-wrap items-start justify-end gap-2">
      <FilterFields filters={search} instant={instant} />
      {others.length > 0 && (
        <FilterButton active={others.filter(({ name }) => values[name] !== '').length} onClear={clear}>
          <FilterFields filters={others} instant={instant} isForm />
        </FilterButton>
      )}
      {isSortable && <SortMenu {...{ columns, sorting, onSort, choose }} />}
      {toolbar !== undefined && <div className="flex flex-wrap items-center gap-2 empty:hidden">{toolbar}</div>}
    </div>
  );
}

/** Loads the next page unless there is none or one is already loading. */
export function loadNextPage({ hasNextPage, isFetchingNextPage, fetchNextPage }: ListQuery): void {
  if (hasNextPage && !isFetchingNextPage) fetchNextPage?.();
}
