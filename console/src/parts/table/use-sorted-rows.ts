import {
  type ColumnDef,
  columnVisibilityFeature,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { useCallback, useMemo, useRef } from 'react';
import type { Column, Sorting } from './column.ts';

const features = tableFeatures({ rowSortingFeature, columnVisibilityFeature, sortedRowModel: createSortedRowModel() });
type Features = typeof features;

const collator = new Intl.Collator(undefined, { numeric: true });

/** Orders numbers by value and all other values as text. */
function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a), String(b));
}

const definitionOf = <Row>(column: Column<Row>): ColumnDef<Features, object> => ({
  id: column.id,
  // Rows without a value come last, whether ascending or descending.
  accessorFn: (row) => column.sort?.(row as Row) ?? undefined,
  enableSorting: column.sort !== undefined,
  sortFn: (a, b, id) => compareValues(a.getValue(id), b.getValue(id)),
  sortUndefined: 'last',
});

/** Returns the sorted rows, their keys in the same order, and the visible columns. */
export function useSortedRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  options: {
    readonly rowKey: (row: Row) => string;
    readonly sorting: Sorting | null;
    readonly hidden: readonly string[] | undefined;
  },
) {
  const { rowKey, sorting, hidden } = options;
  // Callers pass `rowKey` inline, so a new function must not trigger sorting.
  const latestKey = useRef(rowKey);
  latestKey.current = rowKey;
  const definitions = useMemo(() => columns.map(definitionOf), [columns]);
  const { column: by = null, descending: desc = false } = sorting ?? {};
  const state = useMemo(
    () => ({
      sorting: by === null ? [] : [{ id: by, desc }],
      columnVisibility: Object.fromEntries((hidden ?? []).map((id) => [id, false])),
    }),
    [by, desc, hidden],
  );
  const getRowId = useCallback((row: object) => latestKey.current(row as Row), []);
  const table = useTable({ features, data: rows as readonly object[], columns: definitions, state, getRowId });
  const sorted = table.getRowModel().rows;
  const visible = table.getVisibleLeafColumns();
  const shown = useMemo(() => {
    const ids = new Set(visible.map(({ id }) => id));
    return columns.filter(({ id }) => ids.has(id));
  }, [columns, visible]);
  const keys = useMemo(() => sorted.map(({ id }) => id), [sorted]);
  return { sorted, shown, keys };
}
