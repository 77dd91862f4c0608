import { expect, test } from 'vitest';
import { insertionIndex, managedLines } from './insertion.ts';

const linesOf = (...texts: string[]) => texts.map((text) => ({ text, end: '\n' as const }));

test('positions a block relative only to lines outside managed blocks', () => {
  const lines = linesOf('x', '# BEGIN muster: other', 'x', '# END muster: other', 'y');
  expect([...managedLines(lines)].sort()).toEqual([1, 2, 3]);
  expect(insertionIndex({ after: '^x$' }, lines, managedLines(lines))).toBe(1);
  expect(insertionIndex({ before: '^x$' }, lines, managedLines(lines))).toBe(0);
  expect(insertionIndex({ before: 'muster' }, lines, managedLines(lines))).toBe(5);
});

test('ignores only the marker line of a block that is not closed', () => {
  expect([...managedLines(linesOf('# BEGIN muster: a', 'x', '# END muster: b', 'y'))]).toEqual([0, 2]);
});
