import { expect, test } from 'vitest';
import { parseVersion } from '../rpm-version.ts';
import { comparePacmanVersions } from './pacman-version.ts';

// Each is older than the next, as `vercmp` of pacman 6.0.2 says; e2e/package-pacman.test.ts compares with the program.
const ascending = [
  ...['1.0a-1', '1.0alpha-1', '1.0b-1', '1.0rc-1', '1.0-1', '1.0-1.1', '1.0-2', '1.0.a-1', '1.0.1-1', '1.0..1-1'],
  ...['1.1-1', '1.10-1', '2-1', '1:0.9-1', '1:1.0-1'],
];

test('orders versions as vercmp does', () => {
  const shuffled = [...ascending].reverse().map(parseVersion).sort(comparePacmanVersions);
  expect(shuffled).toEqual(ascending.map(parseVersion));
  expect(comparePacmanVersions(parseVersion('1.00-1'), parseVersion('1.0-01'))).toBe(0);
});
