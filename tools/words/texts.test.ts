import { expect, test } from 'vitest';
import { textsOf } from './texts.ts';

const found = (file: string, source: string) => textsOf(file, source).map(({ kind, line, text }) => [kind, line, text]);

test('finds comments, and joins consecutive // lines into one', () => {
  const source = [
    '// One thought',
    '// on two lines.',
    'const a = 1; // The end.',
    '',
    '/**',
    ' * A block',
    ' * of two lines.',
    ' */',
  ];
  expect(found('a.ts', source.join('\n'))).toEqual([
    ['comment', 1, 'One thought on two lines.'],
    ['comment', 3, 'The end.'],
    ['comment', 5, 'A block of two lines.'],
  ]);
});

test('ignores comments for tools', () => {
  expect(found('a.ts', '// biome-ignore lint/x: because\n// @ts-expect-error\n/// <reference types="x" />\n')).toEqual(
    [],
  );
});

test('distinguishes log lines from messages, and ignores identifiers', () => {
  const source = [
    "this.#log.warn({ id }, 'failed to write the file');",
    'throw new Error(`no such agent ${name} here`);',
    "const key = 'agent_removed';",
    "out.warn('the certificate is not checked');",
  ];
  expect(found('a.ts', source.join('\n'))).toEqual([
    ['log', 1, 'failed to write the file'],
    ['message', 2, 'no such agent … here'],
    ['message', 4, 'the certificate is not checked'],
  ]);
});

test('finds the text between JSX elements', () => {
  expect(found('a.tsx', 'const a = <p>\n  No agent matches the filter.\n</p>;')).toEqual([
    ['message', 1, 'No agent matches the filter.'],
  ]);
});

test('finds test names, and no other literal in a test file', () => {
  const source = [
    "test('refuses a used token', () => { expect('three words here').toBe(''); });",
    "test.each([1])('counts %s', () => {});",
  ];
  expect(found('a.test.ts', source.join('\n'))).toEqual([
    ['test', 1, 'refuses a used token'],
    ['test', 2, 'counts %s'],
  ]);
});

test('ignores SQL and CSS classes', () => {
  const source = [
    "db.exec('delete from sessions where expires_at < 0');",
    'db.all(`SELECT ${columns} FROM agents`);',
    "const look = 'mt-3 grid grid-cols-2 text-center hover:bg-raised';",
    "const help = 'select agents by tags and attributes';",
    "const advice = 'use a run-time option, or a read-only mode';",
  ];
  expect(found('a.ts', source.join('\n')).map(([, line]) => line)).toEqual([4, 5]);
});
