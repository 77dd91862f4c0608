import { expect, test } from 'vitest';
import { octalMode } from './format.ts';

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
