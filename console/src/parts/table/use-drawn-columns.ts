import { useMemo, useSyncExternalStore } from 'react';
import type { Column } from './column.ts';

/** Matches screens that are too narrow for columns. The widths are those of `fromClasses`. */
const narrow = Object.entries({ sm: '40rem', md: '48rem', lg: '64rem', xl: '80rem', '2xl': '96rem' }).map(
  ([from, width]) => ({ from, query: window.matchMedia(`not all and (min-width: ${width})`) }),
);

function subscribe(listener: () => void): () => void {
  for (const { query } of narrow) query.addEventListener('change', listener);
  return () => {
    for (const { query } of narrow) query.removeEventListener('change', listener);
  };
}

/** Returns the values of `Column.from` whose columns are hidden, separated by spaces. */
const hiddenFrom = (): string =>
  narrow
    .filter(({ query }) => query.matches)
    .map(({ from }) => from)
    .join(' ');

/** Returns a function that reports whether the screen is wide enough for a column. */
export function useFits(): (column: Pick<Column<never>, 'from'>) => boolean {
  const hidden = useSyncExternalStore(subscribe, hiddenFrom);
  return useMemo(() => {
    const tooWide = new Set(hidden.split(' '));
    return ({ from }) => from === undefined || !tooWide.has(from);
  }, [hidden]);
}

/** Reports whether the screen is as narrow as a phone. */
export const useIsPhone = (): boolean => !useFits()({ from: 'sm' });

/** Reports whether a phone shows the column. The first column is always shown. */
const isOnPhone = ({ from, phone }: Pick<Column<never>, 'from' | 'phone'>): boolean =>
  phone === undefined ? from === undefined : phone !== 'hidden';

/**
 * Returns the columns that fit the screen, so that rows have no invisible cells.
 * @param kept ids of columns to return even if they do not fit
 */
export function useDrawnColumns<Row>(
  columns: readonly Column<Row>[],
  kept: readonly string[] | undefined,
): readonly Column<Row>[] {
  const fits = useFits();
  return useMemo(() => {
    const isPhone = !fits({ from: 'sm' });
    return columns.filter(
      (column, at) => kept?.includes(column.id) || (isPhone ? at === 0 || isOnPhone(column) : fits(column)),
    );
  }, [columns, kept, fits]);
}
