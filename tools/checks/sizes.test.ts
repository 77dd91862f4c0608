import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sizeFaults } from './sizes.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'muster-sizes-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const write = (path: string, text: string) => {
  mkdirSync(join(root, dirname(path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const functionOf = (lines: number, name = 'work') => `function ${name}() {\n${'  step();\n'.repeat(lines - 2)}}\n`;
const faults = () => sizeFaults(root);

test('accepts a function of 100 lines, and reports one of 101 lines with its name and line', () => {
  write('agent/src/a.ts', functionOf(100));
  expect(faults()).toEqual([]);
  write('agent/src/a.ts', `\nconst small = 1;\n${functionOf(101)}`);
  expect(faults()).toEqual(['agent/src/a.ts:3  work has 101 lines; divide it into functions of at most 100']);
});

test('reports the names of arrow functions, methods, and properties', () => {
  const body = `{\n${'  step();\n'.repeat(100)}}`;
  write(
    'a.ts',
    `const arrow = () => ${body};\nclass A {\n  method() ${body}\n}\nexport const b = { property: () => ${body} };`,
  );
  expect(faults().map((fault) => fault.split(/ +/)[1])).toEqual(['arrow', 'method', 'property']);
});

test('ignores the size of test files', () => {
  write('agent/src/a.test.ts', functionOf(200));
  for (let index = 0; index < 30; index++) write(`agent/src/x/${index}.test.ts`, '');
  expect(faults()).toEqual([]);
});

test('reports a folder with more than 25 source files', () => {
  for (let index = 0; index < 25; index++) write(`agent/src/x/${index}.ts`, '');
  expect(faults()).toEqual([]);
  write('agent/src/x/more.ts', '');
  expect(faults()).toEqual(['agent/src/x  contains 26 source files; divide it into folders of at most 25']);
});
