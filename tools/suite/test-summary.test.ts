import { describe, expect, test } from 'vitest';
import { verdict } from './test-summary.ts';

const tier = (passed: number, failed = 0, skipped: string[] = []) => ({
  passed,
  failed,
  failures: Array.from({ length: failed }, (_, index) => `a.test.ts › ${index}: is not so`),
  skipped: skipped.map((name) => ({ test: name, reason: 'needs root' })),
});

describe('the verdict of a test run', () => {
  test('adds up the counts of the tiers, and counts checks only if they fail', () => {
    const outcomes = [
      { step: 'types', ran: true, tally: null },
      { step: 'unit', ran: true, tally: tier(10) },
      { step: 'e2e', ran: true, tally: tier(5) },
    ];
    expect(verdict(outcomes, false)).toEqual({ lines: ['15 passed, 0 failed'], succeeded: true });
  });

  test('counts a failed check as a failure and names it', () => {
    const { lines, succeeded } = verdict([{ step: 'lint', ran: false, tally: null }], false);
    expect(lines).toEqual(['failed: lint', '0 passed, 1 failed']);
    expect(succeeded).toBe(false);
  });

  test('does not count a step with failed tests as another failure', () => {
    const { lines } = verdict([{ step: 'unit', ran: false, tally: tier(3, 2) }], false);
    expect(lines).toEqual([
      'failed: unit (2)',
      'failed: a.test.ts › 0: is not so',
      'failed: a.test.ts › 1: is not so',
      '3 passed, 2 failed',
    ]);
  });

  test('counts a crashed runner as a failure, with or without counts', () => {
    expect(verdict([{ step: 'unit', ran: false, tally: null }], false).lines.at(-1)).toBe('0 passed, 1 failed');
    expect(verdict([{ step: 'unit', ran: false, tally: tier(3) }], false).lines.at(-1)).toBe('3 passed, 1 failed');
  });

  test('names a skipped test with its reason, and treats it as failed in strict mode', () => {
    const outcomes = [{ step: 'e2e', ran: true, tally: tier(1, 0, ['machines']) }];
    expect(verdict(outcomes, false)).toEqual({
      lines: ['skipped: machines: needs root', '1 passed, 0 failed, 1 skipped'],
      succeeded: true,
    });
    expect(verdict(outcomes, true)).toEqual({
      lines: ['failed because it was skipped: machines: needs root', '1 passed, 1 failed'],
      succeeded: false,
    });
  });
});
