import { expect, test } from 'vitest';
import { endText, failureText, lastLine } from './failure-text.ts';

test('returns the time limit, the message, or the exit code of a failed program', () => {
  const result = { stderr: 'one\ntwo\n\n', timedOut: false, exitCode: 3 };
  expect(failureText({ ...result, timedOut: true }, 'it', 60_000, lastLine)).toBe('it took longer than 60 s');
  expect(failureText(result, 'psql', 60_000, lastLine)).toBe('two');
  expect(failureText({ ...result, stderr: ' \n' }, 'psql', 60_000, lastLine)).toBe('psql exited with 3');
});

test('distinguishes an exit code from a signal', () => {
  expect(endText({ exitCode: 100, signal: null })).toBe('exited with 100');
  expect(endText({ exitCode: null, signal: 'SIGKILL' })).toBe('was ended by SIGKILL');
});
