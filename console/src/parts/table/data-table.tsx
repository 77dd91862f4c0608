import {
  type ColumnDef,
  columnVisibilityFeature,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual';
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { classNames } from '../class-names.ts';
import { allToggled, rangeChosen, toggled } from './choosing.ts';
import type { ColumnPreference } from './column-preference.ts';
import { TableHeader } from './table-header.tsx';
import { TableRow } from './table-row.tsx';

/**
 * A table of things, as many as there are: only the rows in sight are drawn. Sorted by its headers, walked with the arrow
 * keys, opened with Enter, chosen with Space, by Shift a range of them. One stop of the Tab key, however many rows.
 */

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** `6rem`, or a share of what is left, at least so much: `2fr`, `minmax(8rem,2fr)`. */
  readonly width: string;
  /** By what it is sorted; without it the header does nothing. */
  readonly sort?: (row: Row) => string | number | null;
  readonly align?: 'right';
  /** Left out where there is little room: below `sm` (640 px), `md` (768 px), `lg` (1024 px), `xl` (1280 px) or `2xl` (1536 px). */
  readonly from?: 'sm' | 'md' | 'lg' | 'xl' | '2xl';
}

export interface Sorting {
  readonly column: string;
  readonly descending: boolean;
}

/** `columns` should stay the same from one drawing to the next where rows are many: else each row is drawn anew. */
export interface DataTableProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly rowKey: (row: Row) => string;
  /** What a row is called, for whoever does not see it; its key otherwise. */
  readonly rowLabel?: (row: Row) => string;
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
  /** Columns that are hidden or were resized: see `useColumnPreference` and `ColumnsMenu`. */
  readonly preference?: ColumnPreference;
  readonly onPreference?: (preference: ColumnPreference) => void;
  /** The last rows are near: whoever has more loads them. */
  readonly onNearEnd?: () => void;
}

const features = tableFeatures({ rowSortingFeature, columnVisibilityFeature, sortedRowModel: createSortedRowModel() });
type Features = typeof features;

const collator = new Intl.Collator(undefined, { numeric: true });

/** The order of two values of a column: numbers as such, text as people read it. */
function compareValues(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a), String(b));
}

/** So far from the end the next rows are asked for. */
const nearEnd = 20;
const pageRows = 15;

export function DataTable<Row>({
  label,
  rows,
  columns,
  rowKey,
  rowLabel,
  onOpen,
  sorting,
  onSort,
  chosen,
  onChoose,
  empty,
  rowHeight = 40,
  fill = false,
  preference,
  onPreference,
  onNearEnd,
}: DataTableProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  // Those who call write these in place; rows must not be drawn anew for it.
  const latest = useRef({ rowKey, onOpen, chosen, onChoose });
  latest.current = { rowKey, onOpen, chosen, onChoose };

  const definitions = useMemo(
    () =>
      columns.map(
        (column): ColumnDef<Features, object> => ({
          id: column.id,
          // Rows without a value come last, whichever way.
          accessorFn: (row) => column.sort?.(row as Row) ?? undefined,
          enableSorting: column.sort !== undefined,
          sortFn: (a, b, id) => compareValues(a.getValue(id), b.getValue(id)),
          sortUndefined: 'last',
        }),
      ),
    [columns],
  );
  const hidden = preference?.hidden;
  const { column: by = null, descending: desc = false } = sorting ?? {};
  const state = useMemo(
    () => ({
      sorting: by === null ? [] : [{ id: by, desc }],
      columnVisibility: Object.fromEntries((hidden ?? []).map((id) => [id, false])),
    }),
    [by, desc, hidden],
  );
  const getRowId = useCallback((row: object) => latest.current.rowKey(row as Row), []);
  const table = useTable({ features, data: rows as readonly object[], columns: definitions, state, getRowId });
  const sorted = table.getRowModel().rows;
  const visible = table.getVisibleLeafColumns();
  const shown = useMemo(() => {
    const ids = new Set(visible.map(({ id }) => id));
    return columns.filter(({ id }) => ids.has(id));
  }, [columns, visible]);
  const keys = useMemo(() => sorted.map(({ id }) => id), [sorted]);

  /** The row that has the focus, or had it last: it stays drawn wherever one scrolls, so that the focus is not lost. */
  const [active, setActive] = useState<string | null>(null);
  const activeIndex = useMemo(() => (active === null ? -1 : keys.indexOf(active)), [keys, active]);
  const virtualizer = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 10,
    getItemKey: (index) => keys[index] as string,
    rangeExtractor: (range) => {
      const indexes = defaultRangeExtractor(range);
      if (activeIndex === -1 || indexes.includes(activeIndex)) return indexes;
      return [...indexes, activeIndex].sort((a, b) => a - b);
    },
  });
  const items = virtualizer.getVirtualItems();
  const lastItem = items.at(-1)?.index ?? 0;
  const isNearEnd = sorted.length > 0 && lastItem >= sorted.length - nearEnd;
  useEffect(() => {
    if (isNearEnd) onNearEnd?.();
  }, [isNearEnd, onNearEnd]);
  const firstInSight = virtualizer.range?.startIndex ?? 0;
  const tabStop = activeIndex === -1 ? firstInSight : activeIndex;

  const choosable = chosen !== undefined && onChoose !== undefined;
  /** The row that was chosen or freed last: where a range begins. */
  const anchor = useRef<string | null>(null);
  const latestKeys = useRef(keys);
  latestKeys.current = keys;
  const choose = useCallback((key: string, range: boolean) => {
    const { chosen, onChoose } = latest.current;
    if (chosen === undefined || onChoose === undefined) return;
    onChoose(range ? rangeChosen(latestKeys.current, chosen, anchor.current, key) : toggled(chosen, key));
    if (!range) anchor.current = key;
  }, []);
  const click = useCallback(
    (event: MouseEvent<HTMLElement>, key: string, row: unknown) => {
      const target = event.target as HTMLElement;
      if (target.closest('a,button,input,label,[role=menu]') !== null) return;
      const { chosen, onOpen } = latest.current;
      if (chosen !== undefined && (event.shiftKey || event.metaKey || event.ctrlKey)) choose(key, event.shiftKey);
      else if (!hasSelection()) onOpen?.(row as Row);
    },
    [choose],
  );

  const focus = (index: number) => {
    const to = Math.max(0, Math.min(keys.length - 1, index));
    setActive(keys[to] ?? null);
    virtualizer.scrollToIndex(to);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus());
    return keys[to];
  };

  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const element = (event.target as HTMLElement).closest<HTMLElement>('[data-index]');
    if (element === null || event.target !== element) return;
    const index = Number(element.dataset.index);
    const steps: Record<string, number> = {
      ArrowDown: index + 1,
      j: index + 1,
      ArrowUp: index - 1,
      k: index - 1,
      PageDown: index + pageRows,
      PageUp: index - pageRows,
      Home: 0,
      End: keys.length - 1,
    };
    const to = event.ctrlKey || event.metaKey || event.altKey ? undefined : steps[event.key];
    if (to !== undefined) {
      event.preventDefault();
      const key = focus(to);
      if (event.shiftKey && choosable && key !== undefined) {
        if (anchor.current === null || !chosen.has(anchor.current)) {
          anchor.current = keys[index] as string;
          onChoose(rangeChosen(keys, new Set([...chosen, anchor.current]), anchor.current, key));
        } else choose(key, true);
      }
    } else if (event.key === 'Enter') onOpen?.(sorted[index]?.original as Row);
    else if (event.key === ' ' && choosable) {
      event.preventDefault();
      choose(keys[index] as string, event.shiftKey);
    } else if (event.key === 'a' && (event.ctrlKey || event.metaKey) && choosable) {
      event.preventDefault();
      onChoose(new Set([...chosen, ...keys]));
    } else if (event.key === 'Escape' && choosable && chosen.size > 0) {
      event.preventDefault();
      onChoose(new Set());
    }
  };

  const widths = preference?.widths;
  const chosenHere = useMemo(() => (chosen === undefined ? 0 : countOf(keys, chosen)), [keys, chosen]);
  return (
    <div
      ref={scroller}
      className={classNames('relative overflow-auto overscroll-contain', fill ? 'h-full' : 'max-h-[75vh]')}
      onKeyDown={onKeyDown}
    >
      <div
        role="grid"
        aria-label={label}
        aria-rowcount={sorted.length + 1}
        aria-multiselectable={choosable || undefined}
        className="w-max min-w-full"
      >
        <TableHeader
          columns={shown}
          sorting={sorting ?? null}
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
            onPreference === undefined
              ? undefined
              : (id, width) => onPreference({ hidden: hidden ?? [], widths: { ...widths, [id]: width } })
          }
        />
        {sorted.length > 0 && (
          <div role="rowgroup" style={{ height: virtualizer.getTotalSize() }} className="relative">
            {items.map(({ index, key, start, size }) => {
              const row = sorted[index];
              if (row === undefined) return null;
              return (
                <TableRow
                  key={key as string}
                  id={row.id}
                  row={row.original as Row}
                  name={rowLabel?.(row.original as Row) ?? row.id}
                  index={index}
                  start={start}
                  size={size}
                  columns={shown}
                  widths={widths}
                  isChosen={choosable ? chosen.has(row.id) : null}
                  isTabStop={index === tabStop}
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
      {sorted.length === 0 && empty}
    </div>
  );
}

/** Whoever marks text to copy it does not want the row opened. */
const hasSelection = (): boolean => (window.getSelection()?.toString() ?? '') !== '';

function countOf(keys: readonly string[], chosen: ReadonlySet<string>): number {
  if (chosen.size === 0) return 0;
  return keys.reduce((count, key) => (chosen.has(key) ? count + 1 : count), 0);
}
