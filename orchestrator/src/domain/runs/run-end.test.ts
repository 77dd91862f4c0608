import { expect, test } from 'vitest';
import { endText } from './run-end.ts';

const none = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0 };

test.each([
  ['running', { succeeded: 20 }, 'apply of web succeeded on 20 agents'],
  ['running', { succeeded: 1 }, 'apply of web succeeded on 1 agent'],
  ['running', { succeeded: 53, failed: 1 }, 'apply of web failed on 1 of 54 agents'],
  ['running', { succeeded: 53, cancelled: 1 }, 'apply of web succeeded on 53 of 54 agents'],
  ['running', { succeeded: 52, failed: 1, skipped: 1 }, 'apply of web failed on 1 of 54 agents'],
  ['halted', { failed: 1, skipped: 19 }, 'apply of web ended after it was halted: succeeded on 0 of 20 agents'],
  ['cancelled', { succeeded: 3, cancelled: 2 }, 'apply of web ended after it was canceled: succeeded on 3 of 5 agents'],
] as const)('describes the end of a run (%s, %o)', (status, counts, text) => {
  expect(endText({ kind: 'apply', assignment: 'web', status }, { ...none, ...counts })).toBe(text);
});

test('describes the end of a run on selected agents', () => {
  const run = { kind: 'plan', assignment: null, status: 'running' } as const;
  expect(endText(run, { ...none, succeeded: 2 })).toBe('plan of selected agents succeeded on 2 agents');
});
