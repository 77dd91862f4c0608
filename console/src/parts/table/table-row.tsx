import { type MouseEvent, memo, type ReactNode } from 'react';
import { classNames } from '../class-names.ts';
import type { Column } from './column.ts';
import { gapClass, stickyClasses, trackOf } from './column-track.ts';

interface TableRowProps<Row> {
  readonly id: string;
  readonly row: Row;
  readonly name: string;
  readonly index: number;
  /** Distance from the first row, and height of the row, in pixels. */
  readonly start: number;
  readonly size: number;
  /** Columns that fit the screen. */
  readonly columns: readonly Column<Row>[];
  readonly widths: Readonly<Record<string, number>> | undefined;
  /** The callback ref that measures the row; undefined if its height is `size`. */
  readonly measure: ((row: HTMLElement | null) => void) | undefined;
  /** Whether the row has two lines. */
  readonly isPhone: boolean;
  /** Shown below the row; null if the row is closed, undefined if it cannot open. */
  readonly details: ReactNode;
  /** Null if rows cannot be selected. */
  readonly isChosen: boolean | null;
  readonly isTabStop: boolean;
  /** Whether no row follows. The table's border then takes the place of the row's line. */
  readonly isLast: boolean;
  readonly opens: boolean;
  readonly onFocus: (id: string) => void;
  readonly onChoose: (id: string, range: boolean) => void;
  readonly onClick: (event: MouseEvent<HTMLElement>, id: string, row: unknown) => void;
}

const Cell = ({ className, children }: { readonly className: string; readonly children: ReactNode }) => (
  <div role="gridcell" className={classNames('flex min-w-0 items-center', className)}>
    {children}
  </div>
);

/** The cells of a row on a phone, at the places that their columns name (`Column.phone`). */
function TwoLines<Data>({ columns, row }: { readonly columns: readonly Column<Data>[]; readonly row: Data }) {
  const [first, ...others] = columns;
  const at = (...places: Column<Data>['phone'][]) => others.filter(({ phone }) => places.includes(phone));
  const line = at(undefined, 'line', 'labeled');
  const lineEnd = at('line-end');
  return (
    <>
      <div className="flex min-h-11 min-w-0 flex-1 flex-col justify-center gap-1 px-2 py-2">
        <div className="flex min-w-0 items-center gap-3">
          {first !== undefined && <Cell className="wraps-names flex-1">{first.cell(row)}</Cell>}
          {at('top').map((column) => (
            <Cell key={column.id} className="shrink-0 text-xs empty:hidden">
              {column.cell(row)}
            </Cell>
          ))}
        </div>
        {(line.length > 0 || lineEnd.length > 0) && (
          <div className="flex min-w-0 items-start gap-3 text-xs">
            <div role="none" className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-1">
              {line.map((column) => (
                <Cell key={column.id} className="max-w-full gap-1 empty:hidden">
                  {column.phone === 'labeled' && <span className="text-muted">{column.header}</span>}
                  {column.cell(row)}
                </Cell>
              ))}
            </div>
            {lineEnd.map((column) => (
              <Cell key={column.id} className="shrink-0 empty:hidden">
                {column.cell(row)}
              </Cell>
            ))}
          </div>
        )}
        {at('block').map((column) => (
          <Cell key={column.id} className="text-xs empty:hidden">
            {column.cell(row)}
          </Cell>
        ))}
      </div>
      {at('end').map((column) => (
        <Cell key={column.id} className="shrink-0 empty:hidden">
          {column.cell(row)}
        </Cell>
      ))}
    </>
  );
}

/**
 * The checkbox of a row.
 * @param isAtTop whether the row is higher than its first line
 * @param onChoose called with whether Shift was held; if so, the caller selects a range
 */
function Choice({
  name,
  isChosen,
  isAtTop,
  onChoose,
}: {
  readonly name: string;
  readonly isChosen: boolean;
  readonly isAtTop: boolean;
  readonly onChoose: (isRange: boolean) => void;
}) {
  return (
    <div role="gridcell" className="flex w-8 shrink-0 self-stretch max-sm:w-11">
      <label
        className={classNames(
          'flex flex-1 justify-center',
          isAtTop ? 'items-start pt-2.5 max-sm:pt-3' : 'items-center',
        )}
      >
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Select ${name}`}
          className="size-4"
          checked={isChosen}
          onChange={() => {}}
          onClick={(event) => onChoose(event.shiftKey)}
        />
      </label>
    </div>
  );
}

/** The cells of a row on a wide screen. */
function OneLine<Data>({
  columns,
  row,
  widths,
  isTall,
}: Pick<TableRowProps<Data>, 'columns' | 'row' | 'widths'> & {
  /** Whether cells may have several lines. */
  readonly isTall: boolean;
}) {
  return columns.map((column, at) => (
    <div
      key={column.id}
      role="gridcell"
      style={trackOf(column.width, widths?.[column.id])}
      className={classNames(
        'flex min-w-0 self-stretch px-2',
        gapClass(columns, column.id),
        // The first lines of all cells are as high as the button of the row's name.
        isTall ? 'items-start py-1.5 leading-6' : 'items-center',
        column.align && 'justify-end text-right',
        at === 0 && stickyClasses,
      )}
    >
      {column.cell(row)}
    </div>
  ));
}

/** A table row. Memoized, so that it does not render again when other rows are selected, focused, or hovered. */
function Row<Data>({
  id,
  row,
  name,
  index,
  start,
  size,
  columns,
  widths,
  measure,
  isPhone,
  details,
  isChosen,
  isTabStop,
  isLast,
  opens,
  onFocus,
  onChoose,
  onClick,
}: TableRowProps<Data>) {
  const isTall = details !== undefined;
  const line = (
    <>
      {isChosen !== null && (
        <Choice name={name} isChosen={isChosen} isAtTop={isTall} onChoose={(isRange) => onChoose(id, isRange)} />
      )}
      {isPhone ? <TwoLines columns={columns} row={row} /> : <OneLine {...{ columns, row, widths, isTall }} />}
    </>
  );
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the table handles the keys
    <div
      ref={measure}
      role="row"
      aria-rowindex={index + 2}
      data-index={index}
      tabIndex={isTabStop ? 0 : -1}
      aria-selected={isChosen ?? undefined}
      style={{
        ...(measure === undefined ? { height: size } : {}),
        ...{ transform: `translateY(${start}px)`, contain: 'layout style' },
      }}
      className={classNames(
        'absolute inset-x-0 top-0 text-sm outline-offset-[-2px]',
        !isTall && lineClasses,
        !isLast && 'border-b',
        isChosen ? 'bg-accent-soft' : 'bg-surface hover:bg-hover',
        opens && 'cursor-pointer',
      )}
      onFocus={() => onFocus(id)}
      onClick={(event) => onClick(event, id, row)}
    >
      {isTall ? (
        <>
          <div role="none" className={classNames(lineClasses, 'bg-inherit')}>
            {line}
          </div>
          {details !== null && (
            <div role="gridcell" data-details className="cursor-auto border-t bg-canvas px-4 py-4">
              {details}
            </div>
          )}
        </>
      ) : (
        line
      )}
    </div>
  );
}

const lineClasses = 'flex items-center px-2';

export const TableRow = memo(Row) as typeof Row;
