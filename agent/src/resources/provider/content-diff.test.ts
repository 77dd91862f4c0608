import { expect, test } from 'vitest';
import { whileSuspended } from '../../converge/test/suspended.ts';
import { contentDiff } from './content-diff.ts';

const text = (lines: readonly string[]): Buffer => Buffer.from(lines.map((line) => `${line}\n`).join(''));
const numbered = (count: number, line: (i: number) => string): Buffer =>
  text(Array.from({ length: count }, (_, i) => line(i)));

test('shows, in a diff, the changed lines with their context', () => {
  expect(contentDiff('/f', text(['1', '2', '3', '4', '5', '6']), text(['1', '2', '3', '4', '5', 'six']))).toBe(
    '--- /f\n+++ /f\n@@ -3,4 +3,4 @@\n 3\n 4\n 5\n-6\n+six\n',
  );
});

test('replaces the whole content if the line comparison exceeds its bounds', () => {
  const isReplaced = (count: number, before: (i: number) => string, after: (i: number) => string) =>
    contentDiff('/f', numbered(count, before), numbered(count, after)).includes(`@@ -1,${count} +1,${count} @@`);
  expect(
    isReplaced(
      5_000,
      (i) => `a ${i}`,
      (i) => `b ${i}`,
    ),
  ).toBe(true);
  // Matching these repeated lines exceeds the maximum number of comparisons.
  expect(
    isReplaced(
      20_000,
      (i) => `${i % 2}`,
      (i) => `${i % 3}`,
    ),
  ).toBe(true);
  expect(isReplaced(20_000, String, (i) => (i === 10_000 ? 'x' : `${i}`))).toBe(false);
  expect(isReplaced(1_000, String, (i) => (i % 10 === 0 ? 'x' : `${i}`))).toBe(false);
});

test('returns the same diff on a busy machine', async () => {
  const imports = { contentDiff: new URL('./content-diff.ts', import.meta.url) };
  const work = `
    const text = (every) => Buffer.from(Array.from({ length: 5_000 }, (_, i) => (i % every ? i : -i) + '\\n').join(''));
    const [one, other] = (globalThis.texts ??= [text(20), text(30)]);
    const diff = contentDiff('/f', one, other);
    if (diff !== (globalThis.first ??= diff)) throw new Error(diff.slice(0, 80));`;
  expect(await whileSuspended(imports, work, 300)).toBeNull();
});
