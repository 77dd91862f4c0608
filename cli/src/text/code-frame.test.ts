import fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { codeFrame } from './code-frame.ts';
import { colorsFor } from './style.ts';

const plain = { color: colorsFor(false), width: null };
const source = 'name: motd\nsupports: [{ platform: linux }]\nresources:\n  - id: motd\n    resouce: {}\n';

test('prints the lines around an error with a caret below it', () => {
  expect(codeFrame(source, { line: 5, column: 5 }, plain)).toMatchInlineSnapshot(`
    "  3 | resources:
      4 |   - id: motd
    > 5 |     resouce: {}
        |     ^"
  `);
  expect(codeFrame(source, { line: 1 }, plain)).toMatchInlineSnapshot(`
    "> 1 | name: motd
        | ^
      2 | supports: [{ platform: linux }]
      3 | resources:"
  `);
  expect(codeFrame(source, {}, plain)).toBe('');
  expect(codeFrame(source, { line: 99 }, plain)).toBe('');
  expect(codeFrame(source, { line: 6 }, plain)).toBe('');
  expect(codeFrame('', { line: 1 }, plain)).toBe('');
});

test('cuts long lines to the part around the error', () => {
  const long = `${'a'.repeat(100)}${'b'.repeat(100)}`;
  const text = codeFrame(`${long}\n`, { line: 1, column: 101 }, { ...plain, width: 40 });
  expect(text).toMatchInlineSnapshot(`
    "> 1 | …aaaaaaaaaaaaaaaaaaaaabbbbbbbbbbb…
        |                       ^"
  `);
});

test('places the caret below the faulty character after any text', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 150 }),
      fc.string({ maxLength: 150 }),
      fc.constantFrom(40, 80, 200),
      (before, after, width) => {
        fc.pre(!/[\r\n]/.test(before + after));
        const text = codeFrame(`${before}@${after}`, { line: 1, column: before.length + 1 }, { ...plain, width });
        const [line = '', caret = ''] = text.split('\n');
        expect(text.split('\n')).toHaveLength(2);
        expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}]/u);
        // The character above the caret is the faulty one.
        const left = stringWidth(caret.slice(0, caret.indexOf('^')));
        let at = 0;
        while (at < line.length && stringWidth(line.slice(0, at)) < left) at++;
        expect(line.slice(at)).toContain('@');
        expect(stringWidth(line.slice(0, line.indexOf('@', at)))).toBe(left);
      },
    ),
  );
});
