import type { CSSProperties } from 'react';

/** Styles of a column's cells, shared by the header and the rows. */

export const fromClasses = {
  sm: 'max-sm:hidden',
  md: 'max-md:hidden',
  lg: 'max-lg:hidden',
  xl: 'max-xl:hidden',
  '2xl': 'max-2xl:hidden',
} as const;

/** Keeps the first column in view when a narrow table scrolls sideways. */
export const stickyClasses = 'max-md:sticky max-md:left-0 max-md:z-[1] max-md:bg-inherit';

/**
 * Translates a column width to flex: `6rem` is fixed, `minmax(8rem,2fr)` grows by its share from 8rem, `2fr` from 4rem.
 * @param pixels overrides the width after a resize
 */
export function trackOf(width: string, pixels?: number): CSSProperties {
  if (pixels !== undefined) return { flex: `0 0 ${pixels}px` };
  const share = /([\d.]+)fr/.exec(width)?.[1];
  if (share === undefined) return { flex: `0 0 ${width}` };
  const minWidth = /minmax\(([^,]+),/.exec(width)?.[1] ?? '4rem';
  return { flex: `${share} 1 0`, minWidth };
}
