import { expect, test } from 'vitest';
import { filesMatching } from './file-patterns.ts';

test.each([
  ['*.key', 'a.key', true],
  ['*.key', 'deep/er/a.key', true],
  ['*.key', 'a.key.pub', false],
  ['*', '.hidden', true],
  ['?é*', 'aé', true],
  ['?', '😀', true],
  ['a*b*c', 'aXbYbc', true],
  ['a*b*c', 'aXbYb', false],
  ['/*.key', 'a.key', true],
  ['/*.key', 'd/a.key', false],
  ['tls/*.key', 'tls/a.key', true],
  ['tls/*.key', 'x/tls/a.key', false],
  ['*', 'a.b', true],
  ['a.b', 'axb', false],
  ['(a+)+', '(a+)+', true],
])('reports whether the pattern %s matches the path %s: %s', (pattern, path, is) => {
  expect(filesMatching(['no match', pattern])(path)).toBe(is);
});

test('matches a pattern with many wildcards in linear time', () => {
  const before = process.cpuUsage().user;
  expect(filesMatching([`${'*a'.repeat(100)}b`])('a'.repeat(255))).toBe(false);
  expect(process.cpuUsage().user - before).toBeLessThan(1_000_000);
});
