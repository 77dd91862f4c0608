import { useEffect, useMemo, useRef, useState } from 'react';
import { runInSlices } from '../in-slices.ts';
import type { Column, Sorting } from './column.ts';
import { type KnownOrder, type SortedRows, sortInSteps } from './row-order.ts';

type Sort<Row> =
  | { readonly result: SortedRows<Row> }
  /** The sort needs more steps. */
  | { readonly result: null; readonly steps: Iterator<undefined, SortedRows<Row>> };

/**
 * Returns the sorted rows with their keys in the same order, and whether rows are still being sorted. A few new rows
 * are sorted immediately, many in slices. Until the sort is complete, returns the rows that the table showed before.
 * Partial rows keep their order, because the orchestrator has sorted them.
 */
export function useSortedRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  options: { readonly rowKey: (row: Row) => string; readonly sorting: Sorting | null; readonly isPartial: boolean },
): SortedRows<Row> & { readonly isSorting: boolean } {
  const { rowKey, sorting, isPartial } = options;
  // Callers pass `rowKey` inline, so a new function must not trigger sorting.
  const latestKey = useRef(rowKey);
  latestKey.current = rowKey;
  const { column = '', descending = false } = sorting ?? {};
  const sortValue = isPartial ? undefined : columns.find(({ id }) => id === column)?.sort;
  const known = useRef<KnownOrder | null>(null);
  const sort = useMemo((): Sort<Row> => {
    const keyOf = latestKey.current;
    if (sortValue === undefined) return { result: { rows, keys: rows.map(keyOf) } };
    const ofColumn = known.current?.column === column ? known.current : null;
    const steps = sortInSteps(rows, { keyOf, sortValue, descending, known: ofColumn });
    const first = steps.next();
    return first.done ? { result: first.value } : { result: null, steps };
  }, [rows, column, sortValue, descending]);
  const [sorted, setSorted] = useState<{ readonly sort: Sort<Row>; readonly result: SortedRows<Row> } | null>(null);
  useEffect(() => {
    if (sort.result !== null) return;
    return runInSlices(sort.steps, (result) => setSorted({ sort, result }));
  }, [sort]);
  const result = sort.result ?? (sorted?.sort === sort ? sorted.result : null);
  const shown = useRef<SortedRows<Row>>(nothing);
  useEffect(() => {
    if (result === null) return;
    shown.current = result;
    // Keeps the order of rows that a filter hides, so that they reappear already sorted.
    const { current } = known;
    if (current?.column !== column || current.keys.length <= result.keys.length)
      known.current = { column, descending, keys: result.keys };
  }, [result, column, descending]);
  return { ...(result ?? shown.current), isSorting: result === null };
}

const nothing: SortedRows<never> = { rows: [], keys: [] };
