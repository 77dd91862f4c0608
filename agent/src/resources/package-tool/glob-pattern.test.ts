import { expect, test } from 'vitest';
import { globPattern } from './glob-pattern.ts';

test.each([
  ['linux-*', 'linux-lts', true],
  ['linux-?ts', 'linux-lts', true],
  ['linux-[a-m]ts', 'linux-lts', true],
  ['linux-[!a-m]ts', 'linux-lts', false],
  ['linux-[!a-m]ts', 'linux-zts', true],
  ['lib[^x]', 'libx', true],
  ['lib[z-a]', 'lib[z-a]', true],
  ['lib[z-a]', 'libz', false],
  ['lib+.x', 'lib+.x', true],
  ['lib+.x', 'libbbx', false],
])('%s matches %s: %s', (glob, name, matches) => {
  expect(globPattern(glob).test(name)).toBe(matches);
});
