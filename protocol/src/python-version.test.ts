import { expect, test } from 'vitest';
import { pipVersion } from './module/kinds/format.ts';
import { isSamePythonVersion, pythonName, pythonVersion } from './python-version.ts';

test.each([
  ['1.0', '1.0.0', true],
  ['1', '1.0.0.0', true],
  ['v1.2', '1.2', true],
  ['1.0', '1.0.1', false],
  ['01.002', '1.2', true],
  ['1.0-Alpha_1', '1.0a1', true],
  ['1.0.c2', '1.0rc2', true],
  ['1.0preview', '1.0rc0', true],
  ['1.0-5', '1.0.post5', true],
  ['1.0rev5', '1.0.post5', true],
  ['1.0.dev', '1.0dev0', true],
  ['0!1.0', '1.0', true],
  ['1!1.0', '1.0', false],
  ['1.0+cu121', '1.0', true],
  ['1.0', '1.0+cu121', false],
  ['1.0+Ubuntu-01', '1.0+ubuntu.1', true],
  ['1.0+a', '1.0+b', false],
  ['1.0a1', '1.0', false],
  ['99999999999999999999.1', '99999999999999999999.1.0', true],
  ['not a version', 'not a version', true],
])('compares the installed version %s with %s', (installed, declared, isSame) => {
  expect(isSamePythonVersion(installed, declared)).toBe(isSame);
});

test.each([
  '',
  'a',
  '1.0+\u212A',
  '1.0\u0660',
  '1.',
  '1..0',
  '1.0+',
  '1.0+a..b',
  '1.0+a+b',
  '1.*',
  '1.0 ',
  '1\n',
  '1.0post1post2',
  '!1',
  '-1',
])('refuses %j as a version', (text) => {
  expect(pythonVersion(text)).toBeNull();
});

// An ambiguous pattern takes exponential time for texts that almost match.
test.each([
  `${'1'.repeat(100_000)}!`,
  `1${'.1'.repeat(50_000)}x`,
  `1+${'a.'.repeat(50_000)}`,
  `1${'-_.'.repeat(30_000)}`,
  `1+${'a'.repeat(100_000)}!`,
  `1a${'0'.repeat(60)}${'.post0'.repeat(9)}`,
  `${'1.'.repeat(60)}1x`,
])('refuses a hostile version in linear time', (text) => {
  const start = process.threadCpuUsage();
  expect(pipVersion(text)).toContain('must be one version');
  // Microseconds.
  expect(process.threadCpuUsage(start).user).toBeLessThan(500_000);
});

test('compares names as PEP 503 defines it', () => {
  expect(pythonName('Zope.Interface')).toBe('zope-interface');
  expect(pythonName('a-_.b')).toBe('a-b');
});
