import { useVirtualizer } from '@tanstack/react-virtual';
import { ChevronDown, ChevronUp } from 'lucide-react';
import { type KeyboardEvent, type ReactNode, useMemo, useRef } from 'react';
import { classNames } from './class-names.ts';

/**
 * A table of things, as many as there are: only the rows in sight are drawn. Sorted by its headers, walked with the arrow
 * keys, opened with Enter, chosen with Space.
 */

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** A track of CSS grid, as `minmax(8rem,2fr)` or `6rem`. */
  readonly width: string;
  /** By what it is sorted; without it the header does nothing. */
  readonly sort?: (row: Row) => string | number | null;
  readonly align?: 'right';
  /** Left out where there is little room: below `sm` (640 px), `md` (768 px), `lg` (1024 px) or `xl` (1280 px). */
  readonly from?: 'sm' | 'md' | 'lg' | 'xl';
}

export interface Sorting {
  readonly column: string;
  readonly descending: boolean;
}

export interface DataTableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly rowKey: (row: Row) => string;
  /** What Enter and a click on a row do. A link in the first cell should lead to the same. */
  readonly onOpen?: (row: Row) => void;
  readonly sorting?: Sorting | null;
  readonly onSort?: (sorting: Sorting) => void;
  /** Keys of the chosen rows; without it rows cannot be chosen. */
  readonly chosen?: ReadonlySet<string>;
  readonly onChoose?: (chosen: ReadonlySet<string>) => void;
  /** In place of the rows when there are none. */
  readonly empty: ReactNode;
  /** Pixels. */
  readonly rowHeight?: number;
  /** Takes the height it is given and scrolls inside; else as high as its rows, up to a screen. */
  readonly fill?: boolean;
}

const fromClasses = { sm: 'max-sm:hidden', md: 'max-md:hidden', lg: 'max-lg:hidden', xl: 'max-xl:hidden' } as const;

function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null) return 1;
  if (b === null) return -1;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a), String(b));
}
const collator = new Intl.Collator(undefined, { numeric: true });

/** The rows in the order of a column; rows without a value last, whichever way. */
export function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sorting: Sorting | null | undefined,
): readonly Row[] {
  const by = sorting && columns.find(({ id }) => id === sorting.column)?.sort;
  if (!by) return rows;
  const keyed = rows.map((row) => [by(row), row] as const);
  keyed.sort(([a], [b]) => (a === null || b === null || !sorting.descending ? compare(a, b) : compare(b, a)));
  return keyed.map(([, row]) => row);
}

export function DataTable<Row>({
  label,
  rows,
  columns,
  rowKey,
  onOpen,
  sorting,
  onSort,
  chosen,
  onChoose,
  empty,
  rowHeight = 40,
  fill = false,
}: DataTableProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const sorted = useMemo(() => sortRows(rows, columns, sorting), [rows, columns, sorting]);
  const virtualizer = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    getItemKey: (index) => rowKey(sorted[index] as Row),
  });
  const choosable = chosen !== undefined && onChoose !== undefined;
  // The tracks of columns that are hidden must go too, so each cell sizes itself.
  const cellStyle = (column: Column<Row>) => flexOf(column.width);

  const toggle = (key: string) => {
    if (!choosable) return;
    const next = new Set(chosen);
    if (!next.delete(key)) next.add(key);
    onChoose(next);
  };
  const allChosen = choosable && sorted.length > 0 && sorted.every((row) => chosen.has(rowKey(row)));

  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const element = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
    if (element === null || event.target !== element) return;
    const index = Number(element.dataset.index);
    const focus = (next: number) => {
      event.preventDefault();
      const to = Math.max(0, Math.min(sorted.length - 1, next));
      virtualizer.scrollToIndex(to);
      requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus());
    };
    if (event.key === 'ArrowDown' || event.key === 'j') focus(index + 1);
    else if (event.key === 'ArrowUp' || event.key === 'k') focus(index - 1);
    else if (event.key === 'PageDown') focus(index + 15);
    else if (event.key === 'PageUp') focus(index - 15);
    else if (event.key === 'Home') focus(0);
    else if (event.key === 'End') focus(sorted.length - 1);
    else if (event.key === 'Enter') onOpen?.(sorted[index] as Row);
    else if (event.key === ' ' && choosable) {
      event.preventDefault();
      toggle(rowKey(sorted[index] as Row));
    }
  };

  return (
    <div
      ref={scroller}
      className={classNames('relative overflow-auto', fill ? 'h-full' : 'max-h-[75vh]')}
      onKeyDown={onKeyDown}
    >
      <div role="table" aria-label={label} aria-rowcount={sorted.length + 1} className="min-w-full">
        <div role="rowgroup" className="sticky top-0 z-10 border-b bg-surface">
          <div role="row" aria-rowindex={1} className="flex h-9 items-center px-2 text-muted text-xs">
            {choosable && (
              <div role="columnheader" className="flex w-8 shrink-0 justify-center">
                <input
                  type="checkbox"
                  aria-label="Choose all"
                  className="size-4 accent-[var(--accent)]"
                  checked={allChosen}
                  ref={(box) => {
                    if (box) box.indeterminate = !allChosen && chosen.size > 0;
                  }}
                  onChange={() => onChoose(allChosen ? new Set() : new Set(sorted.map(rowKey)))}
                />
              </div>
            )}
            {columns.map((column) => {
              const isSorted = sorting?.column === column.id;
              return (
                <div
                  key={column.id}
                  role="columnheader"
                  aria-sort={isSorted ? (sorting.descending ? 'descending' : 'ascending') : undefined}
                  style={cellStyle(column)}
                  className={classNames(
                    'min-w-0 px-2',
                    column.align && 'text-right',
                    column.from && fromClasses[column.from],
                  )}
                >
                  {column.sort && onSort ? (
                    <button
                      type="button"
                      className="inline-flex max-w-full items-center gap-0.5 rounded font-medium hover:text-text"
                      onClick={() => onSort({ column: column.id, descending: isSorted && !sorting.descending })}
                    >
                      <span className="truncate">{column.header}</span>
                      {isSorted &&
                        (sorting.descending ? (
                          <ChevronDown aria-hidden="true" className="size-3.5" />
                        ) : (
                          <ChevronUp aria-hidden="true" className="size-3.5" />
                        ))}
                    </button>
                  ) : (
                    <span className="font-medium">{column.header}</span>
                  )}
                </div>
              );
            })}
          </div>
        </div>
        {sorted.length === 0 ? (
          <div role="rowgroup">
            <div role="row">
              <div role="cell">{empty}</div>
            </div>
          </div>
        ) : (
          <div role="rowgroup" style={{ height: virtualizer.getTotalSize(), position: 'relative' }}>
            {virtualizer.getVirtualItems().map(({ index, key, start, size }) => {
              const row = sorted[index] as Row;
              const id = rowKey(row);
              const isChosen = chosen?.has(id) ?? false;
              return (
                // biome-ignore lint/a11y/useKeyWithClickEvents: keys are heard where the rows are
                <div
                  key={key}
                  role="row"
                  aria-rowindex={index + 2}
                  data-index={index}
                  tabIndex={0}
                  aria-selected={choosable ? isChosen : undefined}
                  style={{ height: size, transform: `translateY(${start}px)` }}
                  className={classNames(
                    'absolute inset-x-0 top-0 flex items-center border-b px-2 text-sm outline-offset-[-2px]',
                    isChosen ? 'bg-accent-soft' : 'hover:bg-hover',
                    onOpen && 'cursor-pointer',
                  )}
                  onClick={(event) => {
                    const target = event.target as HTMLElement;
                    if (target.closest('a,button,input,label,[role=menu]') === null && !hasSelection()) onOpen?.(row);
                  }}
                >
                  {choosable && (
                    <div role="cell" className="flex w-8 shrink-0 justify-center">
                      <input
                        type="checkbox"
                        aria-label={`Choose ${id}`}
                        className="size-4 accent-[var(--accent)]"
                        checked={isChosen}
                        onChange={() => toggle(id)}
                      />
                    </div>
                  )}
                  {columns.map((column) => (
                    <div
                      key={column.id}
                      role="cell"
                      style={cellStyle(column)}
                      className={classNames(
                        'flex min-w-0 items-center px-2',
                        column.align && 'justify-end text-right',
                        column.from && fromClasses[column.from],
                      )}
                    >
                      {column.cell(row)}
                    </div>
                  ))}
                </div>
              );
            })}
          </div>
        )}
      </div>
    </div>
  );
}

/** Whoever marks text to copy it does not want the row opened. */
const hasSelection = (): boolean => (window.getSelection()?.toString() ?? '') !== '';

/** `6rem` → fixed; `minmax(8rem,2fr)` and `2fr` → grows by its share. */
function flexOf(width: string): { flex: string; minWidth?: number } {
  const share = /([\d.]+)fr/.exec(width)?.[1];
  return share === undefined ? { flex: `0 0 ${width}` } : { flex: `${share} 1 0`, minWidth: 0 };
}
