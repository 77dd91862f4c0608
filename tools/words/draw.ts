import { hash } from 'node:crypto';

/**
 * Draws a sample without replacement. Selects the positions with the lowest SHA-256 of position and seed, so that a
 * seed always produces the same sample.
 * @returns at most `count` values, in the order of `values`
 */
export function draw<Value>(values: readonly Value[], count: number, seed: number): Value[] {
  const drawn = values
    .map((_, position) => ({ position, rank: hash('sha256', `${seed} ${position}`) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .slice(0, count);
  return drawn.toSorted((a, b) => a.position - b.position).map(({ position }) => values[position]!);
}
