import { mkdirSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { removeDirectory, temporaryDirectory } from '../../converge/test/agent.ts';
import { digestAt, type Footprint, stampAt } from '../../host/files/footprint.ts';
import type { DpkgDatabase } from '../../host/packages/dpkg.ts';
import { leftovers, mayHaveBrought, reasonToKeep, type Trace, type TracedPath } from './trace.ts';

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

/** Returns a database with the hash that dpkg would have recorded for the configuration file. */
function delivered(): DpkgDatabase {
  const known = database();
  const web = known.packages.get('web:all')!;
  const path = `${root}/web/main.conf`;
  return {
    ...known,
    packages: new Map([['web:all', { ...web, conffiles: new Map([[path, digestAt(path, 'md5')!]]) }]]),
  };
}

describe('unchanged remains of a package', () => {
  test('deletes remains that are unchanged or were rewritten with the same content', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/web/made`, 'by a script\n');
    expect(reasonToKeep(['web:all'], before, now(...all()), known)).toBeNull();
  });

  test('deletes remains although files were removed or other packages added files', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/other/data`, 'of other');
    const present = now(...all().filter((path) => !path.endsWith('made')), `${root}/other/data`);
    expect(reasonToKeep(['web:all'], before, present, known)).toBeNull();
    expect(reasonToKeep(['web:all', 'other:all'], before, present, known)).toMatch(/other\/data was added/);
  });
});

describe('changed remains of a package', () => {
  test('keeps the remains if a configuration file was edited', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/web/main.conf`, 'edited\n');
    expect(reasonToKeep(['web:all'], before, now(...all()), known)).toBe(
      `${root}/web/main.conf has been changed since it was installed`,
    );
  });

  test('keeps the remains if a file that a package script created was changed', () => {
    const [before, known] = [trace(), delivered()];
    writeFileSync(`${root}/web/made`, 'and more\n');
    expect(reasonToKeep(['web:all'], before, now(...all()), known)).toMatch(/web\/made has been changed/);
  });

  test('keeps the remains if a file was added at any depth below a traced directory', () => {
    const [before, known] = [trace(), delivered()];
    mkdirSync(`${root}/web/conf/deep`);
    writeFileSync(`${root}/web/conf/deep/mine`, '');
    const present = now(...all(), `${root}/web/conf/deep`, `${root}/web/conf/deep/mine`);
    expect(reasonToKeep(['web:all'], before, present, known)).toMatch(/deep\/mine was added/);
  });

  test('keeps the remains if a purge would delete older files, or new paths are unknown', () => {
    const known = delivered();
    expect(reasonToKeep(['web:all'], trace({ endangered: { 'web:all': '/srv/web' } }), now(...all()), known)).toBe(
      '/srv/web existed before the package was installed',
    );
    expect(reasonToKeep(['web:all'], trace({ unknown: 'nobody knows' }), now(...all()), known)).toBe('nobody knows');
    expect(reasonToKeep(['web:all'], trace(), null, known)).toMatch(/too many files/);
  });
});

test('lists the unchanged leftovers that belong only to the removed packages, innermost first', () => {
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

test('lists only directories if the packages do not name the paths', () => {
  const before = trace();
  const unnamed = { ...before, paths: before.paths.map((entry) => ({ ...entry, named: false })) };
  expect(leftovers(['web:all'], unnamed, now(...all())).map(({ path }) => path.slice(root.length))).toEqual([
    '/web/conf',
    '/web',
  ]);
});

describe('new paths that packages do not name', () => {
  const path = () => `${root}/web/made`;
  const around = { from: Date.now() - 60_000, to: Date.now() + 60_000 };

  test('attributes a new path to packages that were unpacked at that time', () => {
    expect(mayHaveBrought(path(), stampAt(path())!, [0], around)).toBe(true);
    expect(mayHaveBrought(path(), stampAt(path())!, [], around)).toBe(true);
  });

  test('does not attribute a path to packages before they are unpacked or after dpkg exits', () => {
    expect(mayHaveBrought(path(), stampAt(path())!, [0], { ...around, from: around.to })).toBe(false);
    expect(mayHaveBrought(path(), stampAt(path())!, [0], { ...around, to: around.from })).toBe(false);
    expect(mayHaveBrought(path(), stampAt(path())!, [], { ...around, to: around.from })).toBe(false);
  });

  test('does not attribute files in directories of users to packages', () => {
    expect(mayHaveBrought('/etc/passwd', 'f 1 1', [0], { from: 0, to: around.to })).toBe(false);
    expect(mayHaveBrought('/etc/passwd', 'f 1 1', [], { from: 0, to: around.to })).toBe(true);
    expect(mayHaveBrought('/etc', 'd', [0], { from: 0, to: around.to })).toBe(true);
  });
});
