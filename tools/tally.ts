// A vitest reporter: leaves in the file $MUSTER_TALLY what test.ts adds up.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

export interface Tally {
  passed: number;
  failed: number;
  skipped: Skip[];
}

/** A test that did not run, and why where it says so. */
interface Skip {
  test: string;
  reason: string | null;
}

export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly SerializedError[]): void {
    const tally: Tally = { passed: 0, failed: strayErrors.length, skipped: [] };
    for (const module of modules) {
      let failedInside = false;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') tally.passed++;
        else if (result.state === 'skipped')
          tally.skipped.push({
            test: `${relative(process.cwd(), module.moduleId)} › ${test.fullName}`,
            reason: result.note ?? null,
          });
        else {
          tally.failed++;
          failedInside = true;
        }
      }
      // A file that does not load, or a hook that throws, fails although no test of it did.
      if (module.state() === 'failed' && !failedInside) tally.failed++;
    }
    const path = process.env.MUSTER_TALLY;
    if (path) writeFileSync(path, JSON.stringify(tally));
  }
}
