import { useMemo } from 'react';
import type { Column } from './column.ts';
import { useHiddenWidths } from './screen-widths.ts';

/** Reports whether the screen is as narrow as a phone. */
export const useIsPhone = (): boolean => useHiddenWidths().split(' ').includes('sm');

/** Returns a function that reports whether the screen shows a column unless the operator hides it. */
export function useShows(): (column: Pick<Column<never>, 'from' | 'phone'>) => boolean {
  const hidden = useHiddenWidths();
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
