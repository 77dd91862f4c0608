import { expect, test } from 'vitest';
import { npmVersion, octalMode } from './format.ts';

test.each([
  ['u=rw,go=r', '0644'],
  ['u=rwx,g=rxs,o=', '2750'],
  ['u=rwxs,g=rx,o=rx', '4755'],
  ['a=rwxt', '1777'],
  ['ugo=r', '0444'],
  ['u=rw', null],
  ['u=rw,u=r,go=r', null],
  ['u+w,go=r', null],
  ['0644', null],
  ['', null],
])('converts the permissions %s to %s', (text, octal) => {
  expect(octalMode(text)).toBe(octal);
});

test.each(['1', 'v1.2.3', '^5.4', '>=5 <7', '1.x || >=3', '1 - 2.3', '1.2.3-rc.1+b.2 - 2', '*', '1.x.x', '>1||~2'])(
  'accepts the npm version %j',
  (version) => {
    expect(npmVersion(version)).toBeUndefined();
  },
);

test.each([
  ...['latest', '', '1.x.5', '*.1', '>=5 - 7', '5 - ^7', '1 - 2 - 3', '1  2', '1.2-beta', '1.2.3-01', '1.2.3+a..b'],
  ...['9999999999999999', '1.2.3.4', `1${'a'.repeat(254)}/`, `1.2.3-${'a.'.repeat(124)}/`, `${'1 '.repeat(127)}/`],
])('refuses the npm version %j', (version) => {
  expect(npmVersion(version)).toContain('must be a version');
});
