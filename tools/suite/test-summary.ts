import type { Tally } from './tally.ts';

/** The result of a step in `npm test`. */
export interface Outcome {
  step: string;
  /** Whether the command exited with code 0. */
  ran: boolean;
  /** Counts for a test tier; null for a check, or if the runner wrote no counts. */
  tally: Tally | null;
}

/**
 * Adds up the outcomes. A step that failed without a failed test counts as one failure, so that the last line of a
 * failed run never contains `0 failed`.
 * @param strict whether a skipped test counts as failed, because CI provides everything that tests need
 * @returns lines to print; the last is `N passed, N failed[, N skipped]`
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
    // Prints failures last, so that they are at the end of a long log.
    for (const failure of tally?.failures ?? []) lines.push(`failed: ${failure}`);
    for (const { test, reason } of tally?.skipped ?? []) {
      skipped++;
      lines.push(
        `${strict ? 'failed because it was skipped' : 'skipped'}: ${test}${reason === null ? '' : `: ${reason}`}`,
      );
    }
  }

  if (strict) failed += skipped;
  lines.push(`${passed} passed, ${failed} failed${skipped > 0 && !strict ? `, ${skipped} skipped` : ''}`);
  return { lines, succeeded: failed === 0 };
}
