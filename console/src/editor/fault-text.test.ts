import { expect, test } from 'vitest';
import { judge, syntaxFaults } from './faults.ts';

test.each([
  ['name: a: b\n', /two keys are on one line/],
  ['name: a\n\tb: c\n', /tabs/],
  ['name: a\nname: b\n', /occurs twice/],
  ['name: a\nresources\nsupports: []\n', /no ":"/],
  ['name: a\nmo', /no ":"/],
])('describes the error in %j without the terms of the parser', (text, message) => {
  expect(syntaxFaults(text)[0]?.message).toMatch(message);
});

test('explains a top-level key that is indented too deep', () => {
  const text = 'supports:\n  - platform: linux\n    resources: []\n';
  const fault = { path: '/supports/0/resources', message: 'must be text: write it in quotes', line: 3, column: 5 };
  const { marks } = judge(text, { text, faults: [fault], warnings: [] });
  expect(marks.map(({ message }) => message)).toEqual([
    '“resources” belongs at the top level of the module: remove its indentation',
  ]);
});

test('keeps the message of an error in a key that is already at the top level', () => {
  const text = 'resources: 3\n';
  const fault = { path: '/resources', message: 'must be a list', line: 1, column: 1 };
  expect(judge(text, { text, faults: [fault], warnings: [] }).marks[0]?.message).toBe('must be a list');
});
