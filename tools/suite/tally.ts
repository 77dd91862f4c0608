// A Vitest reporter that writes the counts of a run to the file $MUSTER_TALLY. test.ts adds them up.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

export interface Tally {
  passed: number;
  failed: number;
  /** Name and error of each failed test. The error text has at most `maxErrorChars` characters. */
  failures: string[];
  skipped: Skip[];
}

interface Skip {
  test: string;
  reason: string | null;
}

const maxErrorChars = 3_000;
const maxMessageLines = 40;

/**
 * Returns the messages of an error and its causes. A property test reports its seed below the first line, and the
 * reason for the failure as the cause; both are needed to reproduce a rare failure.
 */
export function describeError(error: SerializedError | undefined): string {
  const messages: string[] = [];
  for (let cause = error; cause && messages.length < 5; cause = cause.cause) {
    const lines = stripVTControlCharacters(cause.message ?? 'no reason given').split('\n');
    messages.push(lines.slice(0, maxMessageLines).join('\n  '));
  }
  return (messages.join('\n  cause: ') || 'no reason given').slice(0, maxErrorChars);
}

export default class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], strayErrors: readonly SerializedError[]): void {
    const tally: Tally = {
      passed: 0,
      failed: strayErrors.length,
      failures: strayErrors.map(describeError),
      skipped: [],
    };
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
          tally.failures.push(`${file} › ${test.fullName}: ${describeError(result.errors?.[0])}`);
          failedInside = true;
        }
      }
      // A file can fail without a failed test, for example if it does not load or a hook throws.
      if (module.state() === 'failed' && !failedInside) {
        tally.failed++;
        tally.failures.push(`${file}: ${describeError(module.errors()[0])}`);
      }
    }
    const path = process.env.MUSTER_TALLY;
    if (path) writeFileSync(path, JSON.stringify(tally));
  }
}
