import { type ReactNode, useMemo } from 'react';
import { classNames } from '../class-names.ts';
import { SkeletonRows } from '../states.tsx';
import { allToggled } from './choosing.ts';
import type { Column, Sorting } from './column.ts';
import type { ColumnPreference } from './column-preference.ts';
import { TableHeader } from './table-header.tsx';
import { TableRow } from './table-row.tsx';
import { useDrawnColumns, useIsPhone } from './use-drawn-columns.ts';
import { useRowActions } from './use-row-actions.ts';
import { useSortedRows } from './use-sorted-rows.ts';
import { useVirtualRows } from './use-virtual-rows.ts';

export type { Column, Sorting } from './column.ts';

/** If there are many rows, pass the same `columns` object in every render; otherwise every row renders again. */
export interface DataTableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly rowKey: (row: Row) => string;
  /** Returns a row's accessible name; its key by default. */
  readonly rowLabel?: (row: Row) => string;
  /** Called on Enter or a click on the row. The first cell should also contain a link to the same page. */
  readonly onOpen?: (row: Row) => void;
  readonly sorting?: Sorting | null;
  readonly onSort?: (sorting: Sorting) => void;
  /** Keys of the selected rows. If absent, rows cannot be selected. */
  readonly chosen?: ReadonlySet<string>;
  readonly onChoose?: (chosen: ReadonlySet<string>) => void;
  /** Shown if there are no rows. */
  readonly empty: ReactNode;
  /** Pixels; an estimate if the table has `details`. */
  readonly rowHeight?: number;
  /**
   * Returns what to show below a row, or null if the row is closed. The cells of such a table may have several lines, so
   * its rows are measured.
   */
  readonly details?: (row: Row) => ReactNode;
  /** Whether the table may be as high as its container. By default it is as high as its rows, up to 75 vh. */
  readonly fill?: boolean;
  /** Hidden and resized columns. See `useColumnPreference` and `ColumnsMenu`. */
  readonly preference?: ColumnPreference;
  readonly onPreference?: (preference: ColumnPreference) => void;
  /** Called to load more rows when the last rows come into view. */
  readonly onNearEnd?: () => void;
  /**
   * Whether more rows are loading without a request from the table. Until they arrive, `rows` must already be sorted.
   */
  readonly isPartial?: boolean;
}

/** Estimated height of a row with two lines, in pixels. */
const phoneRowHeight = 60;

/**
 * A virtualized table. On a phone, each row has two lines. Headers sort, arrow keys move, Enter opens, Space selects, and
 * Shift selects ranges. All rows together are one tab stop.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, rows, columns, rowKey, rowLabel, onOpen, sorting = null, onSort, chosen, onChoose, empty } = props;
  const { rowHeight = 36, fill = false, preference, onPreference, onNearEnd, isPartial = false, details } = props;
  const hidden = preference?.hidden;
  const widths = preference?.widths;
  const { rows: sorted, keys, isSorting } = useSortedRows(rows, columns, { rowKey, sorting, isPartial });
  const shown = useMemo(() => columns.filter(({ id }) => hidden?.includes(id) !== true), [columns, hidden]);
  const drawn = useDrawnColumns(shown, preference?.kept);
  const isPhone = useIsPhone();
  const { scroller, items, height, measure, tabStop, setActive, focus, onFocus, onBlur } = useVirtualRows(
    keys,
    isPhone ? phoneRowHeight : rowHeight,
    onNearEnd,
    isPhone || details !== undefined,
  );
  const rowAt = (index: number) => sorted[index] as Row;
  const { choose, click, onKeyDown } = useRowActions({ keys, rowAt, focus, onOpen, chosen, onChoose });
  const chosenHere = useMemo(() => countOf(keys, chosen), [keys, chosen]);
  const choosable = chosen !== undefined && onChoose !== undefined;
  return (
    <div
      ref={scroller}
      className={classNames('relative overflow-auto overscroll-contain', fill ? 'max-h-full' : 'max-h-[75vh]')}
      onKeyDown={onKeyDown}
      onFocus={onFocus}
      onBlur={onBlur}
    >
      <div
        role="grid"
        aria-label={label}
        aria-rowcount={isPartial ? -1 : sorted.length + 1}
        aria-busy={isSorting || isPartial || undefined}
        aria-multiselectable={choosable || undefined}
        className={isPhone ? 'w-full' : 'w-max min-w-full'}
      >
        <TableHeader
          columns={isPhone ? drawn : shown}
          drawn={drawn}
          isPhone={isPhone}
          kept={preference?.kept}
          sorting={sorting}
          onSort={onSort}
          choose={
            choosable
              ? {
                  all: keys.length > 0 && chosenHere === keys.length,
                  some: chosenHere > 0,
                  toggle: () => onChoose(allToggled(keys, chosen)),
                }
              : null
          }
          widths={widths}
          onWidth={
            onPreference &&
            ((id, width) =>
              onPreference({ hidden: hidden ?? [], kept: preference?.kept ?? [], widths: { ...widths, [id]: width } }))
          }
        />
        {sorted.length > 0 && (
          <div role="rowgroup" style={{ height }} className="relative">
            {items.map(({ index, key, start, size }) => {
              const row = sorted[index];
              const id = keys[index];
              if (row === undefined || id === undefined) return null;
              return (
                <TableRow
                  key={key as string}
                  {...{ id, row, index, start, size, widths, isPhone }}
                  details={details?.(row)}
                  name={rowLabel?.(row) ?? id}
                  columns={drawn}
                  measure={measure}
                  isChosen={choosable ? chosen.has(id) : null}
                  isTabStop={index === tabStop}
                  isLast={index === sorted.length - 1}
                  opens={onOpen !== undefined}
                  onFocus={setActive}
                  onChoose={choose}
                  onClick={click}
                />
              );
            })}
          </div>
        )}
      </div>
      {sorted.length === 0 && (isSorting ? <SkeletonRows rows={14} label="Sorting" /> : empty)}
    </div>
  );
}

function countOf(keys: readonly string[], chosen: ReadonlySet<string> | undefined): number {
  if (chosen === undefined || chosen.size === 0) return 0;
  return keys.reduce((count, key) => (chosen.has(key) ? count + 1 : count), 0);
}
