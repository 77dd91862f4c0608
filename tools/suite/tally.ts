// A Vitest reporter that writes the counts of a run to the file $MUSTER_TALLY. test.ts sums them.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

export interface Tally {
  passed: number;
  failed: number;
  /** Name and first line of the error of each failed test. */
  failures: string[];
  skipped: Skip[];
}

interface Skip {
  test: string;
  reason: string | null;
}

const firstLine = (error: SerializedError | undefined): string =>
  stripVTControlCharacters(error?.message ?? 'no reason was given')
    .split('\n', 1)[0]!
    .slice(0, 300);

export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly SerializedError[]): void {
    const tally: Tally = { passed: 0, failed: strayErrors.length, failures: strayErrors.map(firstLine), skipped: [] };
    for (const module of modules) {
      const file = relative(process.cwd(), module.moduleId);
      let failedInside = false;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') tally.passed++;
        else if (result.state === 'skipped')
          tally.skipped.push({
            test: `${file} › ${test.fullName}`,
            reason: result.note ?? null,
          });
        else {
          tally.failed++;
          tally.failures.push(`${file} › ${test.fullName}: ${firstLine(result.errors?.[0])}`);
          failedInside = true;
        }
      }
      // A file can fail without a failed test if it does not load or a hook throws.
      if (module.state() === 'failed' && !failedInside) {
        tally.failed++;
        tally.failures.push(`${file}: ${firstLine(module.errors()[0])}`);
      }
    }
    const path = process.env.MUSTER_TALLY;
    if (path) writeFileSync(path, JSON.stringify(tally));
  }
}
