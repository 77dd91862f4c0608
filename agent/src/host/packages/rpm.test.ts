import { describe, expect, test } from 'vitest';
import { findInstalled, splitName } from './installed-packages.ts';
import { parsePackages, parseRpm } from './rpm.ts';

const listed = [
  'lib\t0\t2.0\t1\tnoarch',
  'kernel\t0\t6.10.0\t1.fc40\tx86_64',
  'kernel\t0\t6.9.0\t1.fc40\tx86_64',
  'glibc\t0\t2.39\t1.fc40\ti686',
  'glibc\t0\t2.39\t1.fc40\tx86_64',
  'only\t1\t1.0\t1\ti686',
  'odd.noarch\t0\t1\t1\tnoarch',
  'gpg-pubkey\t0\t105ef944\t65ca83d1\t(none)',
  '',
].join('\n');

describe('the database of rpm', () => {
  const database = { ...parseRpm(listed), native: 'x86_64' };

  test('lists the installed versions of a package, newest last', () => {
    expect(findInstalled(database, 'kernel').map(({ version }) => version)).toEqual(['6.9.0', '6.10.0']);
    expect(findInstalled(database, 'lib')).toHaveLength(1);
    for (const none of ['nosuch', 'gpg-pubkey', 'kernel.i686']) expect(findInstalled(database, none)).toEqual([]);
  });

  test("prefers the requested architecture, then the machine's own, then any", () => {
    const archs = (name: string) => findInstalled(database, name).map(({ arch }) => arch);
    expect(archs('glibc')).toEqual(['x86_64']);
    expect(archs('glibc.i686')).toEqual(['i686']);
    expect(archs('only')).toEqual(['i686']);
    expect(archs('odd.noarch')).toEqual(['noarch']);
    expect(splitName('a.b.x86_64', () => false)).toEqual(['a.b', 'x86_64']);
    expect(splitName('python3.11', () => false)).toEqual(['python3.11', null]);
  });

  test('skips invalid lines in rpm output', () => {
    expect(parsePackages('a\tb\nwarning: x\na\t0\t1\t1\tnoarch\textra\na\t(none)\t1\t1\tnoarch')).toEqual([]);
  });
});
