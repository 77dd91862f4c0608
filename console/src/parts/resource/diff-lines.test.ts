import { createTwoFilesPatch } from 'diff';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { diffLines } from './diff-lines.ts';

test('numbers the lines of the old and the new text', () => {
  const unified = createTwoFilesPatch('a', 'b', 'one\ntwo\nthree', 'one\n2\nthree\n');
  expect(diffLines(unified).map(({ kind, text, before, after }) => [kind, text, before, after])).toEqual([
    ['hunk', '@@ -1,3 +1,3 @@', null, null],
    ['same', 'one', 1, 1],
    ['removed', 'two', 2, null],
    ['removed', 'three', 3, null],
    ['note', 'No newline at end of file', null, null],
    ['added', '2', null, 2],
    ['added', 'three', null, 3],
  ]);
});

test('treats lines in a hunk that look like a header as content', () => {
  const unified = createTwoFilesPatch('a', 'b', '-- x\n', '++ y\n');
  expect(diffLines(unified).map(({ kind, text }) => [kind, text])).toEqual([
    ['hunk', '@@ -1,1 +1,1 @@'],
    ['removed', '-- x'],
    ['added', '++ y'],
  ]);
});

test('shows text that is not a diff unchanged', () => {
  expect(diffLines('too large to be compared\n')).toEqual([
    { kind: 'note', text: 'too large to be compared', before: null, after: null },
  ]);
});

test('reconstructs the old and the new text of any diff from its lines', () => {
  const text = fc.array(fc.constantFrom('', 'a', '- b', '+ c', '@@ -1 +1 @@', '\\ d', ' e'), { maxLength: 12 });
  fc.assert(
    fc.property(text, text, (first, second) => {
      const textOf = (lines: string[]) => lines.map((line) => `${line}\n`).join('');
      const lines = diffLines(
        createTwoFilesPatch('a', 'b', textOf(first), textOf(second), undefined, undefined, { context: 99 }),
      );
      const of = (kinds: string[]) => lines.filter(({ kind }) => kinds.includes(kind)).map((line) => line.text);
      if (textOf(first) === textOf(second)) return;
      expect(of(['removed', 'same'])).toEqual(first);
      expect(of(['added', 'same'])).toEqual(second);
    }),
  );
});
