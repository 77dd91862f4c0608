import type { Environment } from '../directories.ts';
import type { Colors } from './style.ts';

/** Renders numbers as a row of characters. Pure. */

/** Null: measured without a value. Undefined: no sample. */
export type Point = number | null | undefined;

export interface Glyphs {
  /** From the lowest to the highest. */
  readonly levels: readonly string[];
  /** Character for a null point. */
  readonly none: string;
  /** Character for a full cell of a bar. */
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

/** Block characters, or ASCII for `TERM=dumb`, the Linux console, and locales without UTF-8. */
export function glyphsFor({ TERM, LC_ALL, LC_CTYPE, LANG }: Environment, plain = false): Glyphs {
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  const cannot = TERM === 'dumb' || TERM === 'linux' || (locale !== '' && !/utf-?8/i.test(locale));
  return plain || cannot ? ascii : blocks;
}

/**
 * Draws one character for each point, and a blank for undefined. The caller gives the range, so that rows can be
 * compared; values beyond it are clamped.
 */
export function sparkline(points: readonly Point[], range: { least: number; most: number }, glyphs: Glyphs): string {
  const { least, most } = range;
  const top = glyphs.levels.length - 1;
  return points
    .map((point) => {
      if (point === undefined) return ' ';
      if (point === null || Number.isNaN(point)) return glyphs.none;
      // A range of zero is drawn at the lowest level.
      const share = most > least ? (point - least) / (most - least) : 0;
      return glyphs.levels[Math.min(top, Math.max(0, Math.round(share * top)))] ?? '';
    })
    .join('');
}

/** @param share from 0 to 1; clamped */
export function bar(share: number, width: number, { full, empty }: Glyphs): string {
  const cells = Math.min(width, Math.max(0, Math.round(share * width)));
  return full.repeat(cells) + empty.repeat(width - cells);
}

/** Yellow from 75 %, red from 90 %. */
export const byShare = (share: number | null, color: Colors): ((text: string) => string) =>
  share === null || share < 0.75 ? (text) => text : share < 0.9 ? color.yellow : color.red;
