import { mkdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { removeDirectory, temporaryDirectory } from '../../converge/test/agent.ts';
import { digestAt, type Footprint, stampAt } from '../../host/files/footprint.ts';
import type { DpkgDatabase } from '../../host/packages/dpkg.ts';
import { keptBecause, leftovers, mayHaveBrought, type Trace, type TracedPath } from './trace.ts';

let root: string;
beforeEach(() => {
  root = temporaryDirectory();
  mkdirSync(`${root}/web/conf`, { recursive: true });
  writeFileSync(`${root}/web/main.conf`, 'delivered\n');
  writeFileSync(`${root}/web/made`, 'by a script\n');
  mkdirSync(`${root}/other`);
});
afterEach(() => removeDirectory(root));

const now = (...paths: string[]): Footprint =>
  new Map(paths.flatMap((path) => (stampAt(path) === null ? [] : [[path, stampAt(path) as string]])));
const traced = (path: string, of: number[]): TracedPath => ({
  path,
  stamp: stampAt(path) as string,
  digest: digestAt(path, 'sha1'),
  of,
  named: true,
});
const all = (): string[] => ['web', 'web/conf', 'web/main.conf', 'web/made', 'other'].map((path) => `${root}/${path}`);

function trace(more: Partial<Trace> = {}): Trace {
  const paths = [
    ...['web', 'web/conf', 'web/main.conf', 'web/made'].map((path) => traced(`${root}/${path}`, [0])),
    traced(`${root}/other`, [1]),
  ];
  return { packages: ['web:all', 'other:all'], unknown: null, paths, endangered: {}, ...more };
}

const database = (): DpkgDatabase => ({
  native: 'amd64',
  interrupted: false,
  packages: new Map([
    [
      'web:all',
      {
        name: 'web',
        architecture: 'all',
        state: 'config-files',
        held: false,
        reinstallRequired: false,
        essential: false,
        version: '1',
        auto: false,
        conffiles: new Map([[`${root}/web/main.conf`, 'a6a2d6a2e53ea34ce8aa3fbd41bd0a17']]),
      },
    ],
  ]),
});

/** With the hash that dpkg would have recorded. */
function delivered(): DpkgDatabase {
  const known = database();
  const web = known.packages.get('web:all')!;
  const path = `${root}/web/main.conf`;
  return {
    ...known,
    packages: new Map([['web:all', { ...web, conffiles: new Map([[path, digestAt(path, 'md5')!]]) }]]),
  };
}

describe('what is left of a package goes', () => {
  test('when all of it is unchanged, or was rewritten with the same content', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/web/made`, 'by a script\n');
    expect(keptBecause(['web:all'], before, now(...all()), known)).toBeNull();
  });

  test('when something was taken away, or other packages have more in their places', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/other/data`, 'of other');
    const present = now(...all().filter((path) => !path.endsWith('made')), `${root}/other/data`);
    expect(keptBecause(['web:all'], before, present, known)).toBeNull();
    expect(keptBecause(['web:all', 'other:all'], before, present, known)).toMatch(/other\/data was added/);
  });
});

describe('it stays, and the reason is named', () => {
  test('a configuration file that somebody edited', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/web/main.conf`, 'edited\n');
    expect(keptBecause(['web:all'], before, now(...all()), known)).toBe(
      `${root}/web/main.conf was changed since it was installed`,
    );
  });

  test('what a script of it made and somebody changed', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/web/made`, 'and more\n');
    expect(keptBecause(['web:all'], before, now(...all()), known)).toMatch(/web\/made was changed/);
  });

  test('what somebody added, however deep', () => {
    const [before, known] = [trace(), delivered()];
    mkdirSync(`${root}/web/conf/deep`);
    writeFileSync(`${root}/web/conf/deep/mine`, '');
    const present = now(...all(), `${root}/web/conf/deep`, `${root}/web/conf/deep/mine`);
    expect(keptBecause(['web:all'], before, present, known)).toMatch(/deep\/mine was added/);
  });

  test('what its scripts would take away although it was there before; what is not known', () => {
    const known = delivered();
    expect(keptBecause(['web:all'], trace({ endangered: { 'web:all': '/srv/web' } }), now(...all()), known)).toBe(
      '/srv/web was there before it was installed',
    );
    expect(keptBecause(['web:all'], trace({ unknown: 'nobody knows' }), now(...all()), known)).toBe('nobody knows');
    expect(keptBecause(['web:all'], trace(), null, known)).toMatch(/too many files/);
  });
});

test('what a purge forgot is what is of these packages alone, as it came, innermost first', () => {
  const before = trace();
  writeFileSync(`${root}/web/made`, 'and more\n');
  expect(leftovers(['web:all'], before, now(...all())).map(({ path }) => path.slice(root.length))).toEqual([
    '/web/main.conf',
    '/web/conf',
    '/web',
  ]);
  expect(leftovers(['other:all'], before, now(...all())).map(({ path }) => path.slice(root.length))).toEqual([
    '/other',
  ]);
});

test('what they do not name is not taken away, but for directories that are empty', () => {
  const before = trace();
  const unnamed = { ...before, paths: before.paths.map((entry) => ({ ...entry, named: false })) };
  expect(leftovers(['web:all'], unnamed, now(...all())).map(({ path }) => path.slice(root.length))).toEqual([
    '/web/conf',
    '/web',
  ]);
});

describe('what appeared with packages that do not name it', () => {
  const path = () => `${root}/web/made`;
  const around = { from: Date.now() - 60_000, to: Date.now() + 60_000 };

  test('may be theirs if it came while they did', () => {
    expect(mayHaveBrought(path(), stampAt(path())!, [0], around)).toBe(true);
    expect(mayHaveBrought(path(), stampAt(path())!, [], around)).toBe(true);
  });

  test('is of others if it came before they were unpacked, or after dpkg was done', () => {
    expect(mayHaveBrought(path(), stampAt(path())!, [0], { ...around, from: around.to })).toBe(false);
    expect(mayHaveBrought(path(), stampAt(path())!, [0], { ...around, to: around.from })).toBe(false);
    expect(mayHaveBrought(path(), stampAt(path())!, [], { ...around, to: around.from })).toBe(false);
  });

  test('is of people where people put things', () => {
    expect(mayHaveBrought('/etc/passwd', 'f 1 1', [0], { from: 0, to: around.to })).toBe(false);
    expect(mayHaveBrought('/etc/passwd', 'f 1 1', [], { from: 0, to: around.to })).toBe(true);
    expect(mayHaveBrought('/etc', 'd', [0], { from: 0, to: around.to })).toBe(true);
  });
});
