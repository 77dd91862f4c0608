import { expect, test } from 'vitest';
import { installedPackages } from './installed-packages.ts';
import { isEraseRefusal, multipleIn, oldHalves, rpmSpec } from './rpm-erase.ts';
import { compareRpmVersions } from './rpm-version.ts';

test('finds the versions that an interrupted transaction had to replace, but no others that are installed in parallel', () => {
  const one = (name: string, version: string, arch = 'x86_64', epoch = 0) =>
    ({ name, epoch, version, release: '1', arch }) as const;
  const before = [
    ...[one('upgraded', '1.0'), one('downgraded', '0.9', 'x86_64', 1), one('other', '1.0', 'i686')],
    ...[one('kept', '1.0'), one('kept', '2.0'), one('same', '1.0')],
  ];
  const after = [...before, one('upgraded', '1.1'), one('downgraded', '1.0'), one('other', '1.1'), one('new', '1.0')];
  const halves = oldHalves(installedPackages(after, compareRpmVersions), new Set(before.map(rpmSpec)));
  expect(halves.map(rpmSpec)).toEqual(['upgraded-1.0-1.x86_64', 'downgraded-0.9-1.x86_64']);
});

test('finds the packages of which several versions may be installed', () => {
  const provides = `${['kernel\tkernel = 6.4', 'kernel\tmultiversion(kernel)', 'dkms\tinstallonlypkg(module)'].join('\n')}
tool\ttool-slot
named\tnamed = 1
other\tother = 1
`;
  expect([...multipleIn(provides, new Set(['named', 'provides:tool-slot']))]).toEqual([
    'kernel',
    'dkms',
    'tool',
    'named',
  ]);
});

// Recorded from rpm 4.18.0.
test('recognizes a removal that rpm refused', () => {
  expect(isEraseRefusal('error: Failed dependencies:\n\tlib is needed by (installed) needs-1.0-1.noarch\n')).toBe(true);
  expect(isEraseRefusal('error: package lib-2.0-1.noarch is not installed\n')).toBe(true);
  expect(isEraseRefusal('error: %preun(lib-0:2.0-1.noarch) scriptlet failed, exit status 1\n')).toBe(false);
});
