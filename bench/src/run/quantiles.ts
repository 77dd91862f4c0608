export interface Quantiles {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

const at = (sorted: Float64Array, share: number): number | undefined =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

/** Returns an exact quantile of the values, such as the 0.99 quantile; NaN if there are no values. */
export const quantile = (values: readonly number[], share: number): number =>
  at(Float64Array.from(values).sort(), share) ?? Number.NaN;

/**
 * Returns the median of the values; for an even number, the upper of the two middle values. NaN if there are no values.
 */
export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Returns exact quantiles of the values; zeros if there are no values. */
export function quantiles(values: readonly number[]): Quantiles {
  const sorted = Float64Array.from(values).sort();
  return { p50: at(sorted, 0.5) ?? 0, p99: at(sorted, 0.99) ?? 0, max: at(sorted, 1) ?? 0 };
}
