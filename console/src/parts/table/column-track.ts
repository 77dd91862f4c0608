import type { CSSProperties } from 'react';
import type { Column } from './column.ts';

/** Styles of a column's cells, shared by the header and the rows. */

/** Hides headers on narrow screens. Rows have no cells there (use-drawn-columns.ts). */
export const fromClasses = {
  sm: 'max-sm:hidden',
  md: 'max-md:hidden',
  lg: 'max-lg:hidden',
  xl: 'max-xl:hidden',
  '2xl': 'max-2xl:hidden',
} as const;

/** Keeps the first column in view when a narrow table scrolls sideways. */
export const stickyClasses = 'max-md:sticky max-md:left-0 max-md:z-[1] max-md:bg-inherit';

/** Separates a left-aligned cell from the right-aligned numbers before it. @param columns the columns on the screen */
export function gapClass(columns: readonly Pick<Column<unknown>, 'id' | 'align'>[], id: string): string | undefined {
  const at = columns.findIndex((column) => column.id === id);
  return columns[at - 1]?.align === 'right' && columns[at]?.align === undefined ? 'pl-6' : undefined;
}

/**
 * Converts a column width to flex styles: `6rem` is fixed, `minmax(8rem,2fr)` is at least 8rem and grows by its
 * share, and `2fr` is at least 4rem.
 * @param pixels width after a resize; overrides `width`
 */
export function trackOf(width: string, pixels?: number): CSSProperties {
  if (pixels !== undefined) return { flex: `0 0 ${pixels}px` };
  const share = /([\d.]+)fr/.exec(width)?.[1];
  if (share === undefined) return { flex: `0 0 ${width}` };
  const minWidth = /minmax\(([^,]+),/.exec(width)?.[1] ?? '4rem';
  return { flex: `${share} 1 0`, minWidth };
}
