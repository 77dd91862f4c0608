import { ArrowDown, ArrowUp } from 'lucide-react';
import type { KeyboardEvent, PointerEvent } from 'react';
import { classNames } from '../class-names.ts';
import type { Column, Sorting } from './column.ts';
import { fromClasses, gapClass, stickyClasses, trackOf } from './column-track.ts';

interface TableHeaderProps<Row> {
  readonly columns: readonly Column<Row>[];
  /** Columns that fit the screen. */
  readonly drawn: readonly Column<Row>[];
  /** Whether rows have two lines, so that headers have no columns below them. */
  readonly isPhone: boolean;
  /** Columns that are shown even on narrow screens. */
  readonly kept: readonly string[] | undefined;
  readonly sorting: Sorting | null;
  readonly onSort: ((sorting: Sorting) => void) | undefined;
  /** Null if rows cannot be selected. */
  readonly choose: { readonly all: boolean; readonly some: boolean; readonly toggle: () => void } | null;
  readonly widths: Readonly<Record<string, number>> | undefined;
  readonly onWidth: ((column: string, pixels: number) => void) | undefined;
}

/** Column headers. A click sorts; dragging the right edge resizes. */
export function TableHeader<Row>(props: TableHeaderProps<Row>) {
  const { columns, drawn, isPhone, kept, sorting, onSort, choose, widths, onWidth } = props;
  if (isPhone) return <PhoneHeader {...props} />;
  return (
    <div role="rowgroup" className="sticky top-0 z-10 border-b bg-surface">
      <div role="row" aria-rowindex={1} className="flex h-9 items-center bg-surface px-2 text-muted text-xs">
        {choose !== null && (
          <div role="columnheader" className="flex w-8 shrink-0 justify-center">
            <SelectAll choose={choose} />
          </div>
        )}
        {columns.map((column, at) => {
          return (
            <div
              key={column.id}
              data-column={column.id}
              role="columnheader"
              aria-sort={sortOf(column, sorting)}
              style={trackOf(column.width, widths?.[column.id])}
              className={classNames(
                'group/head relative flex h-full min-w-0 items-center px-2',
                gapClass(drawn, column.id),
                column.align && 'justify-end text-right',
                column.from && !kept?.includes(column.id) && fromClasses[column.from],
                at === 0 && stickyClasses,
              )}
            >
              {column.sort && onSort ? (
                <SortButton
                  {...{ column, sorting, onSort }}
                  onWidth={onWidth === undefined ? undefined : (to) => onWidth(column.id, to)}
                />
              ) : (
                <span className="truncate font-medium">{column.header}</span>
              )}
              {onWidth !== undefined && (
                <span
                  aria-hidden="true"
                  className="absolute inset-y-1.5 right-0 w-1.5 cursor-col-resize touch-none border-r border-transparent hover:border-accent group-hover/head:border-line-strong"
                  onPointerDown={(event) => resize(event, (pixels) => onWidth(column.id, pixels))}
                />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** The headers of a table whose rows have two lines, for screen readers. A menu sorts and selects (phone-tools.tsx). */
const PhoneHeader = <Row,>({ columns, sorting, choose }: TableHeaderProps<Row>) => (
  <div role="rowgroup" className="sr-only">
    <div role="row" aria-rowindex={1}>
      {choose !== null && <div role="columnheader">Selected</div>}
      {columns.map((column) => (
        <div key={column.id} role="columnheader" aria-sort={sortOf(column, sorting)}>
          {column.header}
        </div>
      ))}
    </div>
  </div>
);

const sortOf = <Row,>({ id }: Column<Row>, sorting: Sorting | null) =>
  sorting?.column === id ? (sorting.descending ? 'descending' : 'ascending') : undefined;

function SelectAll({ choose }: { readonly choose: NonNullable<TableHeaderProps<never>['choose']> }) {
  return (
    <label className="flex flex-1 items-center justify-center">
      <input
        type="checkbox"
        aria-label="Select all"
        className="size-4"
        checked={choose.all}
        ref={(box) => {
          if (box) box.indeterminate = choose.some && !choose.all;
        }}
        onChange={choose.toggle}
      />
    </label>
  );
}

function SortButton<Row>({
  column,
  sorting,
  onSort,
  onWidth,
}: {
  readonly column: Column<Row>;
  readonly sorting: Sorting | null;
  readonly onSort: (sorting: Sorting) => void;
  readonly onWidth: ((pixels: number) => void) | undefined;
}) {
  const sorted = sortOf(column, sorting);
  const Arrow = sorted === 'descending' ? ArrowDown : ArrowUp;
  return (
    <button
      type="button"
      aria-keyshortcuts={onWidth === undefined ? undefined : 'Shift+ArrowLeft Shift+ArrowRight'}
      onKeyDown={(event) => onWidth !== undefined && resizeByKey(event, onWidth)}
      className="inline-flex h-full max-w-full items-center gap-0.5 rounded font-medium hover:text-text"
      onClick={() => onSort({ column: column.id, descending: sorted === 'ascending' })}
    >
      <span className="truncate">{column.header}</span>
      {sorted !== undefined && <Arrow aria-hidden="true" className="size-3.5 shrink-0" />}
    </button>
  );
}

/** Column width limits in pixels. */
const minWidth = 48;
const maxWidth = 1_200;
const keyStep = 16;

const clampWidth = (pixels: number): number => Math.round(Math.min(maxWidth, Math.max(minWidth, pixels)));

/** Resizes the column with Shift and an arrow key. */
function resizeByKey(event: KeyboardEvent<HTMLElement>, onWidth: (pixels: number) => void): void {
  const step = { ArrowLeft: -keyStep, ArrowRight: keyStep }[event.key];
  const cell = event.currentTarget.parentElement;
  if (!event.shiftKey || step === undefined || cell === null) return;
  event.preventDefault();
  onWidth(clampWidth(cell.getBoundingClientRect().width + step));
}

/** Resizes the column until the pointer is released. */
function resize(event: PointerEvent<HTMLElement>, onWidth: (pixels: number) => void): void {
  const handle = event.currentTarget;
  const cell = handle.parentElement;
  if (cell === null) return;
  event.preventDefault();
  const from = event.clientX;
  const before = cell.getBoundingClientRect().width;
  let frame = 0;
  handle.setPointerCapture(event.pointerId);
  handle.onpointermove = ({ clientX }) => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => onWidth(clampWidth(before + clientX - from)));
  };
  handle.onlostpointercapture = () => {
    handle.onpointermove = null;
    handle.onlostpointercapture = null;
  };
}
