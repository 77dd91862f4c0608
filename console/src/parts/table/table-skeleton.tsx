import { classNames } from '../class-names.ts';
import { Skeleton } from '../states.tsx';
import type { Column } from './column.ts';
import { gapClass, trackOf } from './column-track.ts';
import { useDrawnColumns, useIsPhone } from './use-drawn-columns.ts';

/** Widths of placeholders, so that rows do not look the same. */
const lengths = ['w-3/5', 'w-2/5', 'w-1/2', 'w-3/4', 'w-1/3'] as const;

/** A table that is loading: its column headers, and rows with a placeholder in each cell. */
export function TableSkeleton<Row>({
  columns,
  hidden = [],
  isSelectable = false,
  rows = 12,
  label = 'Loading',
}: {
  readonly columns: readonly Column<Row>[];
  /** Ids of the columns that the operator hides. */
  readonly hidden?: readonly string[];
  readonly isSelectable?: boolean;
  readonly rows?: number;
  readonly label?: string;
}) {
  const drawn = useDrawnColumns(columns, undefined).filter(({ id }) => !hidden.includes(id));
  const isPhone = useIsPhone();
  const line = (row: number) =>
    isPhone ? (
      <div className="flex-1 space-y-2.5 px-2">
        <Skeleton className={classNames('h-3', lengths[row % 3])} />
        <Skeleton className="h-2.5 w-2/3" />
      </div>
    ) : (
      drawn.map(({ id, width, align }, at) => (
        <div key={id} style={trackOf(width)} className={classNames('min-w-0 px-2', gapClass(drawn, id))}>
          <Skeleton
            className={classNames('h-3', lengths[(row * 2 + at) % lengths.length], align === 'right' && 'ml-auto')}
          />
        </div>
      ))
    );
  return (
    <div role="status" aria-label={label} className="divide-y">
      {!isPhone && (
        <div aria-hidden="true" className="flex h-9 items-center px-2 font-medium text-muted text-xs">
          {isSelectable && <span className="w-8 shrink-0" />}
          {drawn.map(({ id, header, width, align }) => (
            <div
              key={id}
              style={trackOf(width)}
              className={classNames('min-w-0 truncate px-2', gapClass(drawn, id), align === 'right' && 'text-right')}
            >
              {header}
            </div>
          ))}
        </div>
      )}
      {Array.from({ length: rows }, (_, row) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: a fixed number of rows
          key={row}
          className={classNames('flex items-center px-2', isPhone ? 'h-15' : 'h-9')}
        >
          {isSelectable && (
            <span className="flex w-8 shrink-0 justify-center max-sm:w-11">
              <Skeleton className="size-4" />
            </span>
          )}
          {line(row)}
        </div>
      ))}
    </div>
  );
}
