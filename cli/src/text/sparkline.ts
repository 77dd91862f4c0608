import type { Environment } from '../directories.ts';
import type { Colors } from './style.ts';

/** Pure functions that render numbers as a row of characters. */

/** A number; null for a sample without a value, undefined for no sample. */
export type Point = number | null | undefined;

export interface Glyphs {
  /** Characters from the lowest to the highest level. */
  readonly levels: readonly string[];
  /** The character for a null point. */
  readonly none: string;
  /** The character for a full cell of a bar. */
  readonly full: string;
  readonly empty: string;
}

const blocks: Glyphs = {
  levels: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
  none: '–',
  full: '█',
  empty: '░',
};
const ascii: Glyphs = { levels: ['_', '.', ':', '-', '=', '+', '*', '#'], none: '?', full: '#', empty: '.' };

/** Returns block characters, or ASCII for `TERM=dumb`, the Linux console, and locales without UTF-8. */
export function glyphsFor({ TERM, LC_ALL, LC_CTYPE, LANG }: Environment, plain = false): Glyphs {
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  const cannot = TERM === 'dumb' || TERM === 'linux' || (locale !== '' && !/utf-?8/i.test(locale));
  return plain || cannot ? ascii : blocks;
}

/**
 * Draws one character for each point, and a space for undefined.
 * @param range the scale, which must be the same for rows to compare; values beyond it are clamped
 */
export function sparkline(points: readonly Point[], range: { min: number; max: number }, glyphs: Glyphs): string {
  const { min, max } = range;
  const top = glyphs.levels.length - 1;
  return points
    .map((point) => {
      if (point === undefined) return ' ';
      if (point === null || Number.isNaN(point)) return glyphs.none;
      // Draws all points at the lowest level if the range is empty.
      const share = max > min ? (point - min) / (max - min) : 0;
      return glyphs.levels[Math.min(top, Math.max(0, Math.round(share * top)))] ?? '';
    })
    .join('');
}

/**
 * Draws a horizontal bar.
 * @param share number from 0 to 1; other values are clamped
 */
export function bar(share: number, width: number, { full, empty }: Glyphs): string {
  const cells = Math.min(width, Math.max(0, Math.round(share * width)));
  return full.repeat(cells) + empty.repeat(width - cells);
}

/** Returns the color for a share: yellow from 75 %, red from 90 %. */
export const byShare = (share: number | null, color: Colors): ((text: string) => string) =>
  share === null || share < 0.75 ? (text) => text : share < 0.9 ? color.yellow : color.red;
