import { expect, test } from 'vitest';
import { askLiveOutput, newestWithin } from './live-output.ts';

test('keeps the most recent programs’ output that fits into a message', () => {
  const printed = (text: string) => ({ stdout: text, stderr: '', truncated: false });
  const shown = [
    ['m/a', printed('a')],
    ['m/b', printed('b'.repeat(300))],
    ['m/c', printed('c')],
  ] as const;
  expect(newestWithin(shown, 1_000)).toEqual(Object.fromEntries(shown));
  expect(Object.keys(newestWithin(shown, 450))).toEqual(['m/b', 'm/c']);
  expect(Object.keys(newestWithin(shown, 100))).toEqual(['m/c']);
  expect(newestWithin(shown, 10)).toEqual({});
});

test('ignores unknown fields in questions and answers, which newer replicas may send', () => {
  const question = { node_id: 'n', operation_id: 'o' };
  expect(askLiveOutput.question.parse({ ...question, later: true })).toEqual(question);
  const shown = { stdout: 'out', stderr: '', truncated: false };
  expect(askLiveOutput.answer.parse({ 'script:a': { ...shown, later: true } })).toEqual({ 'script:a': shown });
});
