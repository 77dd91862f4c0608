import type { Environment } from '../directories.ts';
import type { Colors } from './style.ts';

/** Numbers as a row of characters, one a number. Pure. */

/** A number; null: asked for, and not to be had; undefined: nobody was there to ask. */
export type Point = number | null | undefined;

/** The characters that a row is drawn with. */
export interface Glyphs {
  /** From the lowest to the highest. */
  readonly levels: readonly string[];
  /** Where a number could not be had. */
  readonly none: string;
  /** A cell of a bar. */
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

/**
 * Blocks, unless the terminal cannot show them: one that says it is simple, or whose locale names another encoding
 * than UTF-8.
 */
export function glyphsFor({ TERM, LC_ALL, LC_CTYPE, LANG }: Environment, plain = false): Glyphs {
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  const cannot = TERM === 'dumb' || TERM === 'linux' || (locale !== '' && !/utf-?8/i.test(locale));
  return plain || cannot ? ascii : blocks;
}

/**
 * One character a point. What is lowest and highest is said, so that rows can be compared; a number beyond stays at the
 * edge. Where nobody was there to ask, there is a gap.
 */
export function sparkline(points: readonly Point[], range: { least: number; most: number }, glyphs: Glyphs): string {
  const { least, most } = range;
  const top = glyphs.levels.length - 1;
  return points
    .map((point) => {
      if (point === undefined) return ' ';
      if (point === null || Number.isNaN(point)) return glyphs.none;
      // A row that is level everywhere is low: nothing has happened.
      const share = most > least ? (point - least) / (most - least) : 0;
      return glyphs.levels[Math.min(top, Math.max(0, Math.round(share * top)))] ?? '';
    })
    .join('');
}

/** @param share from 0 to 1; what lies beyond is full or empty */
export function bar(share: number, width: number, { full, empty }: Glyphs): string {
  const cells = Math.min(width, Math.max(0, Math.round(share * width)));
  return full.repeat(cells) + empty.repeat(width - cells);
}

/** Yellow for what is nearly full, red for what is full. */
export const byShare = (share: number | null, color: Colors): ((text: string) => string) =>
  share === null || share < 0.75 ? (text) => text : share < 0.9 ? color.yellow : color.red;
