import picocolors from 'picocolors';
import type { Environment } from './directories.ts';

export type Colors = ReturnType<typeof picocolors.createColors>;

/** How text is laid out for where it goes. */
export interface Style {
  readonly color: Colors;
  /** Columns of the terminal; null: not a terminal, no limit. */
  readonly width: number | null;
  /** Unix seconds, for relative times. */
  readonly now: number;
  /** Show what is left out for brevity. */
  readonly verbose: boolean;
}

/** Colour only on a terminal that has some, and never against NO_COLOR. */
export function hasColor(terminal: boolean, env: Environment): boolean {
  return terminal && !env.NO_COLOR && env.TERM !== 'dumb';
}

export const colorsFor = (on: boolean): Colors => picocolors.createColors(on);

const units: readonly (readonly [string, number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
  ['s', 1],
];

/** A length of time in one unit, e.g. `3m`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  for (const [unit, size] of units) if (whole >= size) return `${Math.floor(whole / size)}${unit}`;
  return '0s';
}

/** How long ago, e.g. `3m ago`; clocks that differ a little must not say it is in the future. */
export const ago = (at: number, now: number): string => (now - at < 5 ? 'just now' : `${duration(now - at)} ago`);

/** @param count the noun stands in the singular for 1 */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`;
