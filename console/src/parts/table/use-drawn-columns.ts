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

const useHidden = (): string => useSyncExternalStore(subscribe, hiddenFrom);

/** Reports whether the screen is as narrow as a phone. */
export const useIsPhone = (): boolean => useHidden().split(' ').includes('sm');

/** Returns a function that reports whether the screen shows a column unless the operator hides it. */
export function useShows(): (column: Pick<Column<never>, 'from' | 'phone'>) => boolean {
  const hidden = useHidden();
  return useMemo(() => {
    const tooWide = new Set(hidden.split(' '));
    return ({ from, phone }) =>
      tooWide.has('sm') && phone !== undefined ? phone !== 'hidden' : from === undefined || !tooWide.has(from);
  }, [hidden]);
}

/**
 * Returns the columns that fit the screen, so that rows have no invisible cells. The first column always fits.
 * @param kept ids of columns to return even if they do not fit
 */
export function useDrawnColumns<Row>(
  columns: readonly Column<Row>[],
  kept: readonly string[] | undefined,
): readonly Column<Row>[] {
  const shows = useShows();
  return useMemo(
    () => columns.filter((column, at) => at === 0 || shows(column) || kept?.includes(column.id)),
    [columns, kept, shows],
  );
}
