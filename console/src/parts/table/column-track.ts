import type { CSSProperties } from 'react';

/** How the cells of a column are laid out: alike in the header and in every row. */

export const fromClasses = {
  sm: 'max-sm:hidden',
  md: 'max-md:hidden',
  lg: 'max-lg:hidden',
  xl: 'max-xl:hidden',
  '2xl': 'max-2xl:hidden',
} as const;

/** The first column stays in sight where the others are scrolled past. */
export const stickyClasses = 'max-md:sticky max-md:left-0 max-md:z-[1] max-md:bg-inherit';

/**
 * `6rem` → fixed; `minmax(8rem,2fr)` → grows by its share, from 8rem; `2fr` → the same, from as much as a word needs.
 * @param pixels what somebody made of it
 */
export function trackOf(width: string, pixels?: number): CSSProperties {
  if (pixels !== undefined) return { flex: `0 0 ${pixels}px` };
  const share = /([\d.]+)fr/.exec(width)?.[1];
  if (share === undefined) return { flex: `0 0 ${width}` };
  const least = /minmax\(([^,]+),/.exec(width)?.[1];
  return { flex: `${share} 1 0`, minWidth: least ?? '4rem' };
}
