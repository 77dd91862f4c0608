import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addonFile } from '../../tools/build/bundle.ts';
import { type Step, unguarded } from './addon-places.ts';
import { addonPath, whyNotLoaded } from './addons.ts';

const bytes = Buffer.from('a native part');
const sha256 = createHash('sha256').update(bytes).digest('hex');

let home: string;
let directory: string;
let cache: string;
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'muster-addons-')));
  directory = join(home, 'data');
  cache = join(home, 'cache');
  for (const folder of [directory, cache]) mkdirSync(folder, { mode: 0o700 });
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

let written = 0;
const content = () => {
  written++;
  return bytes;
};
const extract = (over: object = {}) => addonPath({ name: 'sqlite', directory, sha256, content, ...over }, () => cache);

describe('protection of a folder', () => {
  const user = 1000;
  const root = { path: '/', uid: 0, gid: 0, mode: 0o40755 };
  const under = (step: Partial<Step>, own: Partial<Step> = {}): Step[] => [
    { path: '/x/own', uid: user, gid: user, mode: 0o40700, ...own },
    { path: '/x', uid: 0, gid: 0, mode: 0o40755, ...step },
    root,
  ];

  test.each([
    ['a folder below folders of root', under({})],
    ['a folder below folders of the same user', under({ uid: user })],
    ['a folder below a sticky folder such as /tmp', under({ mode: 0o41777 })],
    [
      'a folder below one that only the private group of the user can write to',
      under({ uid: user, gid: user, mode: 0o40775 }),
    ],
  ])('accepts %s as a cache folder', (_, steps) => {
    expect(unguarded(steps, user)).toBe(null);
  });

  test.each([
    ['a folder that all users can write to', under({}, { mode: 0o40777 }), '/x/own can be written by others'],
    ['a sticky folder that all users can write to', under({}, { mode: 0o41777 }), '/x/own can be written by others'],
    ['a folder below one that all users can write to', under({ mode: 0o40777 }), '/x can be written by others'],
    [
      'a folder below one that a group can write to',
      under({ uid: user, gid: 100, mode: 0o40775 }),
      '/x can be written by',
    ],
    ['a folder below one that the group of root can write to', under({ mode: 0o40775 }), '/x can be written by others'],
    ['a folder of another user', under({}, { uid: 1001 }), '/x/own belongs to another user (1001)'],
    ['a folder below one of another user', under({ uid: 1001 }), '/x belongs to another user (1001)'],
  ])('refuses %s as a cache folder', (_, steps, says) => {
    expect(unguarded(steps, user)).toContain(says);
  });
});

describe('a native addon', () => {
  test('extracts the addon once, readable only by its own user', () => {
    written = 0;
    const path = extract();
    expect(path).toBe(join(directory, 'addons', `sqlite-${sha256.slice(0, 16)}.node`));
    expect(readFileSync(path)).toEqual(bytes);
    expect(statSync(path).mode & 0o777).toBe(0o500);
    expect(statSync(join(directory, 'addons')).mode & 0o777).toBe(0o700);
    expect(extract()).toBe(path);
    expect(written).toBe(1);
    expect(readdirSync(join(directory, 'addons'))).toEqual([basename(path)]);
  });

  test('needs no home directory if the data directory is safe', () => {
    const noHome = () => {
      throw new Error('no home');
    };
    expect(addonPath({ name: 'sqlite', directory, sha256, content }, noHome)).toContain(directory);
  });

  test('replaces an extracted addon whose content changed', () => {
    const path = extract();
    chmodSync(path, 0o700);
    writeFileSync(path, 'something else');
    chmodSync(path, 0o500);
    expect(readFileSync(extract())).toEqual(bytes);
  });

  test('refuses a symbolic link, and an addon that other users can write to', () => {
    const path = extract();
    chmodSync(path, 0o777);
    expect(() => extract()).toThrow(/must be a file of this user that others cannot write to; remove it/);
    rmSync(path);
    writeFileSync(join(home, 'elsewhere'), bytes);
    symlinkSync(join(home, 'elsewhere'), path);
    expect(() => extract()).toThrow(/ELOOP/);
  });

  test.runIf(process.geteuid?.() === 0)("refuses another user's addon", () => {
    const path = extract();
    chownSync(path, 12_345, 12_345);
    expect(() => extract()).toThrow(/must be a file of this user/);
  });

  test('extracts to the cache if other users can write to the directory or an ancestor', () => {
    chmodSync(directory, 0o777);
    expect(extract()).toContain(cache);
    expect(existsSync(join(directory, 'addons'))).toBe(false);
    const inner = join(directory, 'inner');
    mkdirSync(inner, { mode: 0o700 });
    expect(extract({ directory: inner })).toContain(cache);
    // Treats a symbolic link to the home directory as the home directory.
    symlinkSync(inner, join(home, 'link'));
    expect(extract({ directory: join(home, 'link') })).toContain(cache);
    chmodSync(directory, 0o700);
    expect(extract({ directory: join(home, 'link') })).toContain(join(home, 'link'));
    chmodSync(join(directory, 'inner', 'addons'), 0o777);
    expect(extract({ directory: inner })).toContain(cache);
  });

  test('reports how to fix the permissions if neither the directory nor the cache is safe', () => {
    for (const folder of [directory, cache]) chmodSync(folder, 0o777);
    expect(() => extract()).toThrow(
      `no folder for native addons that only this user can write to: ${directory} can be written by others (chmod go-w); ${cache} can be`,
    );
  });

  test('removes files of earlier releases and files that killed processes left', () => {
    const folder = join(directory, 'addons');
    mkdirSync(folder, { mode: 0o700 });
    const old = ['sqlite-0123.node', 'sqlite-4567.node.ab.tmp', 'pty-0123.node', 'sqlite-89.node.cd.tmp'];
    for (const name of old) writeFileSync(join(folder, name), 'old', { mode: 0o500 });
    utimesSync(join(folder, 'sqlite-4567.node.ab.tmp'), 1, 1);
    const path = extract();
    // Keeps a recent temporary file, which may belong to a write in progress, and another addon's files.
    expect(readdirSync(folder).sort()).toEqual(['pty-0123.node', 'sqlite-89.node.cd.tmp', basename(path)].sort());
  });

  test('reports how to fix a file system that is mounted without exec', () => {
    const said = '/x.node: failed to map segment from shared object';
    expect(whyNotLoaded('/x.node', said)).toContain('mounted noexec; choose another data directory');
    expect(whyNotLoaded('/x.node', 'invalid ELF header')).toBe('/x.node cannot be loaded: invalid ELF header');
  });

  test.skipIf(process.platform !== 'linux' || process.geteuid?.() !== 0)(
    'recognizes the loader error for a file system that is mounted without exec',
    () => {
      const path = join(directory, 'sqlite.node');
      const load = `try { process.dlopen({ exports: {} }, '${path}') } catch (error) { process.stdout.write(error.message) }`;
      const steps = `mount -t tmpfs -o noexec none '${directory}' && cp '${addonFile('sqlite')}' '${path}' && exec '${process.execPath}' -e "${load}"`;
      const said = execFileSync('unshare', ['--mount', 'sh', '-c', steps], { encoding: 'utf8' });
      expect(whyNotLoaded(path, said)).toContain('mounted noexec; choose another data directory');
    },
  );
});
