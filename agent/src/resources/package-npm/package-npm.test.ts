import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ResourceBodies } from '@muster/protocol/module';
import { expect, onTestFinished, test } from 'vitest';
import { machineWith } from '../../converge/test/machine-with.ts';
import { diffNpmPackage, diffNpmPackageRemoval, isVersionMet, type NpmPackageBefore } from './diff.ts';
import { packageNpm } from './package-npm.ts';
import { npmMessage } from './run-npm.ts';
import { type Declared, installDirectories, look, parseManifest, type SeenNpmPackage, workPaths } from './seen.ts';

type Body = ResourceBodies['package-npm'];
const declared = (fields: Partial<Body> = {}) =>
  ({
    type: 'package-npm',
    identity: 'tool',
    sensitive_fields: [],
    body: { name: 'tool', ...fields },
  }) as unknown as Declared;
const seen = (fields: Partial<SeenNpmPackage> = {}): SeenNpmPackage => ({
  ...{ version: null, isLink: false, isInterrupted: false, unlinked: [], dangling: [] },
  ...{ absentDirectories: [], emptyDirectories: [], unsafe: null, missing: [] },
  ...fields,
});
const diff = (body: Partial<Body>, now: Partial<SeenNpmPackage> = {}) =>
  diffNpmPackage(declared(body), seen(now), { purpose: 'apply' });
const removal = (before: Partial<NpmPackageBefore>, now: Partial<SeenNpmPackage>) =>
  diffNpmPackageRemoval(declared(), { version: null, absentDirectories: [], ...before }, seen(now));

test('compares the installed version with a version or a range', () => {
  expect(isVersionMet('1.2.3', null)).toBe(true);
  expect(isVersionMet('1.2.3', '1.2.3')).toBe(true);
  expect(isVersionMet('1.2.3', '^1.1')).toBe(true);
  expect(isVersionMet('2.0.0', '^1.1')).toBe(false);
  expect(isVersionMet('2.0.0-rc.1', '>=1')).toBe(false);
  expect(isVersionMet('3.1.0', '1.x || >=3')).toBe(true);
});

test('reads the version and the commands of a package', () => {
  const parse = (manifest: unknown, name = 'tool', hasFile = (_: string) => true) =>
    parseManifest(JSON.stringify(manifest), name, hasFile);
  expect(parse({ version: '1.2.3', bin: './cli.js' })).toEqual({ version: '1.2.3', commands: ['tool'] });
  expect(parse({ version: '1.2.3', bin: 'cli.js' }, '@a/tool')?.commands).toEqual(['tool']);
  expect(parse({ version: '1.2.3', bin: { b: 'b.js', a: 'a.js' } })?.commands).toEqual(['a', 'b']);
  expect(parse({ version: '1.2.3', bin: { '../../etc/x': 'x', '..': 'y', '-f': 'z' } })?.commands).toEqual(['x']);
  expect(parse({ version: '1.2.3' })?.commands).toEqual([]);
  for (const wrong of [null, [], {}, { version: 1 }, { version: '1\n2' }]) expect(parse(wrong)).toBeNull();
  expect(parseManifest('{"version": "1.2', 'tool', () => true)).toBeNull();
});

/** Creates a prefix that contains these files, given by name. */
function prefixWith(files: Record<string, string>): string {
  const prefix = mkdtempSync(join(tmpdir(), 'npm-prefix-'));
  onTestFinished(() => rmSync(prefix, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(prefix, name)), { recursive: true });
    writeFileSync(join(prefix, name), content, { mode: 0o644 });
  }
  return prefix;
}

test('expects links only for commands whose files are in the package', async () => {
  const bin = { a: './a.js', up: '../a.js', none: 'none.js', empty: '', number: 1, folder: '.' };
  const prefix = prefixWith({
    'lib/node_modules/tool/package.json': JSON.stringify({ version: '1.0.0', bin }),
    'lib/node_modules/tool/a.js': '',
  });
  expect((await look(declared({ prefix }), machineWith())).unlinked).toEqual(['a', 'up']);
});

test('checks the directories if npm runs as root, even if `user` declares root', async () => {
  const prefix = prefixWith({ 'bin/x': '' });
  const unsafe = async (user?: string) =>
    (
      await look(
        declared(user === undefined ? { prefix } : { prefix, user }),
        machineWith({ shared: [`${prefix}/bin`] }),
      )
    ).unsafe;
  expect(await unsafe()).toContain('users other than root');
  expect(await unsafe('root')).toContain('users other than root');
  expect(await unsafe('daemon')).toBeNull();
});

test('checks the settings that npm reads under the prefix', async () => {
  const prefix = prefixWith({ 'etc/npmrc': 'registry=http://x/' });
  const unsafe = async (...shared: string[]) => (await look(declared({ prefix }), machineWith({ shared }))).unsafe;
  expect(await unsafe()).toBeNull();
  expect(await unsafe(`${prefix}/etc`)).toContain('users other than root');
  chmodSync(`${prefix}/etc/npmrc`, 0o664);
  expect(await unsafe()).toContain('make it a regular file that only root can write');
  rmSync(`${prefix}/etc/npmrc`);
  symlinkSync('/etc/passwd', `${prefix}/etc/npmrc`);
  expect(await unsafe()).toContain('make it a regular file that only root can write');
});

test('installs, updates, and repairs a package', () => {
  expect(diff({ version: '^1' })).toMatchObject({
    action: 'create',
    changes: [
      { field: 'ensure', from: 'absent', to: 'present' },
      { field: 'version', from: null, to: '^1' },
    ],
  });
  expect(diff({ version: '^1' }, { version: '1.9.0' }).action).toBe('none');
  expect(diff({}, { version: '0.1.0' }).action).toBe('none');
  expect(diff({ version: '^2' }, { version: '1.9.0' })).toMatchObject({
    action: 'update',
    changes: [{ field: 'version', from: '1.9.0', to: '^2' }],
  });
  expect(diff({}, { version: '1.0.0', isInterrupted: true, unlinked: ['a', 'b'] }).changes).toEqual([
    { field: 'files', from: 'incomplete', to: 'complete' },
    { field: 'commands', from: 'missing: a, b', to: 'linked' },
  ]);
});

test('removes a package that is declared absent, and the rest of an interrupted installation', () => {
  expect(diff({ ensure: 'absent' }).action).toBe('none');
  expect(diff({ ensure: 'absent' }, { isInterrupted: true }).action).toBe('remove');
  expect(diff({ ensure: 'absent' }, { dangling: ['a', 'b'] }).changes).toEqual([
    { field: 'commands', from: 'left: a, b', to: null },
  ]);
  expect(diff({ ensure: 'absent' }, { version: '1.0.0' }).changes).toEqual([
    { field: 'ensure', from: 'present', to: 'absent' },
    { field: 'version', from: '1.0.0', to: null },
  ]);
});

test('reports a link as drift, and refuses to replace it', () => {
  expect(() => diff({}, { isLink: true })).toThrow('run npm unlink first');
  const drift = diffNpmPackage(declared(), seen({ isLink: true }), { purpose: 'drift' });
  expect(drift.changes).toEqual([{ field: 'version', from: 'a link', to: 'any' }]);
  expect(removal({ version: '1.0.0' }, { isLink: true }).action).toBe('none');
});

test('refuses to run npm as root in a directory that other users can change', () => {
  expect(() => diff({}, { unsafe: 'users other than root' })).toThrow('users other than root');
  expect(diff({}, { version: '1.0.0', unsafe: 'users other than root' }).action).toBe('none');
  const unsafe = 'users other than root';
  expect(() => removal({}, { version: '1.0.0', unsafe })).toThrow(unsafe);
  const directories = ['/opt/node'];
  expect(() => removal({ absentDirectories: directories }, { emptyDirectories: directories, unsafe })).toThrow(unsafe);
  expect(() => removal({}, { dangling: ['a'], unsafe })).toThrow(unsafe);
  expect(() => removal({ version: '1.0.0' }, { version: '1.0.0', unlinked: ['a'], unsafe })).toThrow(unsafe);
  expect(removal({}, { unsafe }).action).toBe('none');
});

test('waits for npm and the user only if something changes', () => {
  const missing = [{ kind: 'programs' as const, message: 'npm is not installed on this machine' }];
  expect(diff({}, { missing }).awaits).toEqual(missing);
  expect(diff({}, { missing, version: '1.0.0' }).awaits).toBeUndefined();
});

test('restores the previous version, or removes the package and the directories that it created', () => {
  expect(removal({ version: '1.0.0' }, { version: '2.0.0' }).changes).toEqual([
    { field: 'version', from: '2.0.0', to: '1.0.0' },
  ]);
  expect(removal({ version: '1.0.0' }, { version: '1.0.0' }).action).toBe('none');
  expect(removal({ version: '1.0.0' }, {}).changes.map(({ field }) => field)).toEqual(['ensure', 'version']);
  expect(removal({}, { version: '1.0.0' }).changes.map(({ field }) => field)).toEqual(['ensure', 'version']);
  const directories = { absentDirectories: ['/opt/node', '/opt/node/lib'] };
  expect(removal(directories, { emptyDirectories: ['/opt/node/lib'] })).toMatchObject({
    action: 'remove',
    changes: [{ field: 'directories', from: '/opt/node/lib', to: null }],
  });
  expect(removal({}, { emptyDirectories: ['/opt/node/lib'] }).action).toBe('none');
  expect(removal({}, { dangling: ['a'] }).changes).toEqual([{ field: 'commands', from: 'left: a', to: null }]);
});

test('returns the directories of an installation, and the paths that mark an unfinished installation', () => {
  const resource = declared({ name: '@a/tool', prefix: '/opt/node' });
  expect(installDirectories(resource).slice(0, 6)).toEqual([
    ...['/opt', '/opt/node', '/opt/node/bin', '/opt/node/lib', '/opt/node/lib/node_modules'],
    '/opt/node/lib/node_modules/@a',
  ]);
  expect(workPaths(resource)[0]).toBe('/opt/node/lib/node_modules/@a/.muster-tool');
  expect(workPaths(declared())[0]).toBe('/usr/local/lib/node_modules/.muster-tool');
});

test('reports the messages of npm without the paths of its logs', () => {
  const stderr = [
    'npm ERR! code E404',
    'npm ERR! 404 Not Found - GET https://x/tool',
    'npm ERR! ',
    'npm ERR! A complete log of this run can be found in:',
    'npm ERR!     /tmp/x/_logs/1-debug-0.log',
  ].join('\n');
  expect(npmMessage({ stderr, exitCode: 1 })).toBe('code E404 404 Not Found - GET https://x/tool');
  expect(npmMessage({ stderr: 'npm error code E404\n', exitCode: 1 })).toBe('code E404');
  expect(npmMessage({ stderr: 'sh: 1: npm: not found\n', exitCode: 127 })).toBe('sh: 1: npm: not found');
  expect(npmMessage({ stderr: '', exitCode: 9 })).toBe('it exited with 9');
});

test.each<[string, Partial<Body>, string]>([
  ['a name that is an option', { name: '--global' }, 'is not the name of a package'],
  ['a URL', { name: 'https://x.example/a' }, 'is not the name of a package'],
  ['a path', { name: '../a' }, 'is not the name of a package'],
  ['an archive', { name: 'a.tgz' }, 'is not the name of a package'],
  ['a tag', { version: 'latest' }, 'must be a version or a range'],
  ['a range that does not parse', { version: '1.2.3.4' }, 'must be a version or a range'],
  ['a relative prefix', { prefix: 'x' }, 'is not an absolute path'],
  ['a registry with a password', { registry: 'https://u:p@x/' }, 'without a user or password'],
])('refuses %s', (_what, body, message) => {
  expect(() => packageNpm.check(declared(body))).toThrow(message);
});
