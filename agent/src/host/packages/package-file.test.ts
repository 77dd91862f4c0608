import { expect, test } from 'vitest';
import { parseDebFields, parseRpmFields } from './package-file.ts';

test('reads the fields of a .deb file', () => {
  expect(parseDebFields('Package: foo\nVersion: 1:2.0~rc1-3\nArchitecture: amd64\n')).toEqual({
    name: 'foo',
    version: '1:2.0~rc1-3',
    architecture: 'amd64',
  });
});

test.each([
  '',
  'Package: foo\nVersion: 1\n',
  'Package: foo\nArchitecture: all\n',
  'Package: -foo\nVersion: 1\nArchitecture: all\n',
  'Package: foo bar\nVersion: 1\nArchitecture: all\n',
  'Package: foo\nVersion: 1 2\nArchitecture: all\n',
  'Package: foo\nVersion: 1\n more\nArchitecture: all\n',
  `Package: ${'x'.repeat(300)}\nVersion: 1\nArchitecture: all\n`,
])('refuses a .deb file with the fields %j', (text) => {
  expect(() => parseDebFields(text)).toThrow('no valid package name, version, and architecture');
});

test('reads the header of an .rpm file', () => {
  expect(parseRpmFields('foo\t1\t2.0\t3.fc40\tx86_64\t(none)\n')).toEqual({
    name: 'foo',
    version: '1:2.0-3.fc40',
    architecture: 'x86_64',
  });
  expect(parseRpmFields('foo\t0\t2.0^git\t3\tnoarch\t(none)\n').version).toBe('2.0^git-3');
});

test.each([
  '',
  'foo\t0\t2.0\t3\tx86_64\n',
  'foo\tx\t2.0\t3\tx86_64\t(none)\n',
  '-foo\t0\t2.0\t3\tx86_64\t(none)\n',
  'foo\t0\t2 0\t3\tx86_64\t(none)\n',
  'foo\t0\t2.0\t3-1\tx86_64\t(none)\n',
  'foo\t0\t2.0\t3\tx86_64\t(none)\nbar\t0\t2.0\t3\tx86_64\t(none)\n',
  'gpg-pubkey\t0\t2.0\t3\t(none)\t(none)\n',
])('refuses an .rpm file with the header %j', (text) => {
  expect(() => parseRpmFields(text)).toThrow('no valid package name, version, and architecture');
});

test('refuses a source .rpm file', () => {
  expect(() => parseRpmFields('foo\t0\t2.0\t3\tx86_64\t1\n')).toThrow('is a source package; use a binary package');
});
