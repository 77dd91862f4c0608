import { type Bar, bars, type Judged } from './bars.ts';
import { type Figure, finite, judge, notJudged, verdictLine } from './judge.ts';
import type { Comparison, Growth, Result } from './results.ts';

export interface Measured<B extends Judged> {
  /** Scale of the measurement, such as `10,000 agents, 3 rounds`. */
  sizes: string;
  figures: Readonly<Record<keyof (typeof bars)[B], Figure>>;
  growth?: readonly Growth[];
  comparisons?: readonly Comparison[];
}

/**
 * Returns the result of a bench. With `--smoke`, no figure has a value, because the scale is too small for a judgment.
 */
export function resultOf<B extends Judged>(
  bench: B,
  { sizes, figures, growth = [], comparisons = [] }: Measured<B>,
  argv: readonly string[] = process.argv,
): Result {
  const recorded = Object.entries<Figure>(figures).map(([name, figure]) => [
    name,
    argv.includes('--smoke') && typeof figure === 'number' ? notJudged('smoke run') : finite(figure),
  ]);
  return { bench, sizes, figures: Object.fromEntries(recorded), growth, comparisons };
}

/**
 * Prints the verdicts, and sends the result to the launcher; with `--json`, also prints it as one line of JSON.
 * @returns the exit code: 1 if a bar was missed, else 0
 */
export function conclude<B extends Judged>(bench: B, measured: Measured<B>): number {
  const result = resultOf(bench, measured);
  const verdicts = Object.entries<Bar>(bars[bench]).map(([name, bar]) => judge(bar, result.figures[name]));
  for (const verdict of verdicts) console.log(verdictLine(verdict));
  if (process.argv.includes('--json')) console.log(JSON.stringify(result));
  process.send?.(result);
  return verdicts.some(({ met }) => met === false) ? 1 : 0;
}
