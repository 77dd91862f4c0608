import type { Tally } from './tally.ts';

/** Result of one step of `npm test`. */
export interface Outcome {
  step: string;
  /** True when its command ended with 0. */
  ran: boolean;
  /** Counts of a tier of tests; null for a check, or if the runner wrote none. */
  tally: Tally | null;
}

/**
 * Sums up. A step that failed without a failed test to show for it counts as one failure, so that the last line never
 * says `0 failed` of a run that is not good.
 * @param strict a skipped test counts as failed: in CI everything that tests need is there
 * @returns lines to print, the last being `N passed, N failed[, N skipped]`
 */
export function verdict(outcomes: readonly Outcome[], strict: boolean): { lines: string[]; succeeded: boolean } {
  const lines: string[] = [];
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const { step, ran, tally } of outcomes) {
    passed += tally?.passed ?? 0;
    failed += tally?.failed ?? 0;
    if (!ran && (tally?.failed ?? 0) === 0) {
      failed++;
      lines.push(`failed: ${step}`);
    } else if (!ran) lines.push(`failed: ${step} (${tally?.failed})`);
    // Last of all, where somebody who sees only the end of a long log finds them.
    for (const failure of tally?.failures ?? []) lines.push(`failed: ${failure}`);
    for (const { test, reason } of tally?.skipped ?? []) {
      skipped++;
      lines.push(`${strict ? 'failed, since skipped' : 'skipped'}: ${test}${reason === null ? '' : `: ${reason}`}`);
    }
  }

  if (strict) failed += skipped;
  lines.push(`${passed} passed, ${failed} failed${skipped > 0 && !strict ? `, ${skipped} skipped` : ''}`);
  return { lines, succeeded: failed === 0 };
}
