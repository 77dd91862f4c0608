import { median } from './quantiles.ts';

/**
 * Returns the median of the last third of the values divided by the median of the first third; NaN for fewer than three
 * values.
 */
export function trend(values: readonly number[]): number {
  const third = Math.floor(values.length / 3);
  return third === 0 ? Number.NaN : median(values.slice(-third)) / median(values.slice(0, third));
}

/**
 * Returns the growth in the second half of the values divided by the growth in the first half; NaN for fewer than three
 * values.
 */
export function growthBetween(values: readonly number[]): number {
  const middle = Math.floor((values.length - 1) / 2);
  if (middle < 1) return Number.NaN;
  const last = values[2 * middle]!;
  return (last - values[middle]!) / (values[middle]! - values[0]!);
}
