import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ResourceBodies } from '@muster/protocol/module';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../lib/src/clock.ts';
import type { OpenDirectory, PathWalk } from '../../host/files/path-walk.ts';
import { readStart } from '../../host/files/read-start.ts';
import type { Machine } from '../provider/provider.ts';
import { diffPipPackage, diffPipPackageRemoval } from './diff.ts';
import { distributionOf, type Need, orphansIn, recordedFiles, requirementsOf } from './distributions.ts';
import { environmentState, isBare, parseConfig } from './environment.ts';
import { packagePip } from './package-pip.ts';
import { pipMessage } from './run-pip.ts';
import { type Declared, look, type PipPackageBefore, type SeenPipPackage } from './seen.ts';

type Body = ResourceBodies['package-pip'];
const declared = (fields: Partial<Body> = {}) =>
  ({
    type: 'package-pip',
    key: 'package-pip:tool#/opt/venv',
    identity: 'tool#/opt/venv',
    sensitive_fields: [],
    body: { name: 'tool', virtualenv: '/opt/venv', ...fields },
  }) as unknown as Declared;
const seen = (fields: Partial<SeenPipPackage> = {}): SeenPipPackage => ({
  ...{ environment: 'present', version: null, unmanaged: null, isInterrupted: false, missingFile: null, stale: [] },
  ...{
    metadata: null,
    packages: [],
    orphans: [],
    neededBy: [],
    isRequested: false,
    isBare: false,
    isParentMissing: false,
    unsafe: null,
    missing: [],
  },
  ...fields,
});
const diff = (body: Partial<Body>, now: Partial<SeenPipPackage> = {}, willBeThere = false) =>
  diffPipPackage(declared(body), seen(now), { purpose: 'apply', willBeThere: () => willBeThere });
const fresh: PipPackageBefore = { version: null, environment: 'absent', packages: [] };
const removal = (before: Partial<PipPackageBefore>, now: Partial<SeenPipPackage>) =>
  diffPipPackageRemoval(declared(), { ...fresh, environment: 'present', ...before }, seen(now));

/** Returns a machine whose directories belong to root, except some. */
function machineWith({ shared = [], others = [] }: { shared?: readonly string[]; others?: Declared[] } = {}): Machine {
  const open = (path: string): OpenDirectory => ({
    ...{ path, self: path, child: (name) => `${path}/${name}`, uid: 0, trusted: true },
    exclusive: !shared.includes(path),
  });
  const walk: Pick<PathWalk, 'open' | 'release' | 'within'> = {
    open,
    release: () => undefined,
    within: <T>(path: string, _missing: string, action: (parent: OpenDirectory, name: string) => T) =>
      action(open(dirname(path)), path.slice(path.lastIndexOf('/') + 1)),
  };
  return { walk, clock: systemClock, resourcesOf: () => others, isDesired: () => true } as unknown as Machine;
}

const site = 'lib/python3.11/site-packages';
const config = 'home = /usr/bin\nversion = 3.11.2\n';
/** The files of a package, complete. */
const whole = (name: string, version: string, files: Record<string, string> = {}): Record<string, string> => ({
  [`${site}/${name}.py`]: '',
  [`${site}/${name}-${version}.dist-info/METADATA`]: `Name: ${name}\nVersion: ${version}\n\n`,
  [`${site}/${name}-${version}.dist-info/RECORD`]: `${name}.py,,\n`,
  [`${site}/${name}-${version}.dist-info/INSTALLER`]: 'pip\n',
  ...files,
});

/** Makes a virtual environment with files, by their names. */
function environmentWith(files: Record<string, string>): string {
  const environment = mkdtempSync(join(tmpdir(), 'pip-venv-'));
  onTestFinished(() => rmSync(environment, { recursive: true }));
  mkdirSync(join(environment, site), { recursive: true, mode: 0o755 });
  for (const [name, content] of Object.entries({ 'pyvenv.cfg': config, ...files })) {
    mkdirSync(dirname(join(environment, name)), { recursive: true });
    writeFileSync(join(environment, name), content, { mode: 0o644 });
  }
  return environment;
}
const lookAt = (
  virtualenv: string,
  body: Partial<Body> = {},
  machine = machineWith(),
  before = null as null | PipPackageBefore,
) => look(declared({ virtualenv, ...body }), machine, before);

test('installs, updates, and repairs a package', () => {
  expect(diff({ version: '1.0' })).toMatchObject({
    action: 'create',
    changes: [
      { field: 'ensure', from: 'absent', to: 'present' },
      { field: 'version', from: null, to: '1.0' },
    ],
  });
  expect(diff({}, { environment: 'absent' }).changes.at(-1)).toEqual({
    field: 'virtualenv',
    from: null,
    to: 'present',
  });
  expect(diff({ version: '1.0' }, { version: '1.0.0' }).action).toBe('none');
  expect(diff({}, { version: '0.1' }).action).toBe('none');
  expect(diff({ version: '2' }, { version: '1.9', missingFile: 'tool.py' }).changes).toEqual([
    { field: 'version', from: '1.9', to: '2' },
    { field: 'files', from: 'missing: tool.py', to: 'complete' },
  ]);
  expect(diff({}, { version: '1', isInterrupted: true }).changes).toEqual([
    { field: 'files', from: 'interrupted', to: 'complete' },
  ]);
});

test('removes a package that is declared absent, and the rest of an interrupted run', () => {
  expect(diff({ ensure: 'absent' }).action).toBe('none');
  expect(diff({ ensure: 'absent' }, { environment: 'absent' }).action).toBe('none');
  expect(diff({ ensure: 'absent' }, { environment: 'partial' }).action).toBe('remove');
  expect(diff({ ensure: 'absent' }, { isInterrupted: true }).action).toBe('remove');
  expect(diff({ ensure: 'absent' }, { version: '1.0' }).changes.map(({ field }) => field)).toEqual([
    'ensure',
    'version',
  ]);
});

test('refuses what pip must not touch, but reports it as drift', () => {
  expect(() => diff({}, { unmanaged: 'an editable installation' })).toThrow('uninstall it first');
  expect(() => diff({ ensure: 'absent' }, { unmanaged: 'an installation by setup.py' })).toThrow('uninstall it first');
  expect(() => diff({}, { environment: 'other' })).toThrow('is not a virtual environment');
  expect(() => diff({}, { unsafe: 'users other than root' })).toThrow('users other than root');
  expect(diff({}, { version: '1', unsafe: 'users other than root' }).action).toBe('none');
  expect(() => removal({}, { version: '1', unsafe: 'users other than root' })).toThrow('users other than root');
  expect(() => removal({}, { isBare: true, unsafe: 'users other than root' })).toThrow('users other than root');
  expect(removal({}, { unmanaged: 'an editable installation' }).action).toBe('none');
  expect(removal({}, { environment: 'other' }).action).toBe('none');
  const drift = diffPipPackage(declared(), seen({ unmanaged: 'x' }), { purpose: 'drift', willBeThere: () => false });
  expect(drift.changes).toEqual([{ field: 'version', from: 'x', to: 'any' }]);
});

test('requires the directory that contains the environment', () => {
  const missing = { environment: 'absent', isParentMissing: true } as const;
  expect(() => diff({}, missing)).toThrow('/opt does not exist: declare it with directory-unix');
  expect(diff({}, missing, true).action).toBe('create');
});

test('restores the former version, or removes the package, its dependencies, and the environment', () => {
  const fieldsOf = (...args: Parameters<typeof removal>) => removal(...args).changes.map(({ field }) => field);
  expect(fieldsOf({ version: '1.0' }, { version: '2.0' })).toEqual(['version']);
  expect(removal({ version: '1.0' }, { version: '1.0.0' }).action).toBe('none');
  expect(fieldsOf({ version: '1.0' }, { version: '1.0', orphans: ['part'] })).toEqual(['dependencies']);
  expect(fieldsOf({ version: '1.0' }, {})).toEqual(['ensure', 'version']);
  expect(fieldsOf({}, { version: '1.0', orphans: ['part'] })).toEqual(['ensure', 'version', 'dependencies']);
  expect(fieldsOf({}, { isBare: true })).toEqual(['virtualenv']);
  expect(fieldsOf({ environment: 'absent' }, { environment: 'empty' })).toEqual(['virtualenv']);
  expect(removal({ environment: 'empty' }, { environment: 'empty' }).action).toBe('none');
  expect(removal({}, {}).action).toBe('none');
});

test('reads the version of a package and notices missing files', async () => {
  const files = whole('tool', '1.0');
  expect(await lookAt(environmentWith(files))).toMatchObject({ version: '1.0', missingFile: null, stale: [] });
  const { [`${site}/tool.py`]: _gone, ...gutted } = files;
  expect(await lookAt(environmentWith(gutted))).toMatchObject({ version: '1.0', missingFile: 'tool.py', stale: [] });
  const info = `${site}/tool-1.0.dist-info`;
  for (const file of ['RECORD', 'METADATA']) {
    const { [`${info}/${file}`]: _file, ...rest } = files;
    expect(await lookAt(environmentWith(rest)), file).toMatchObject({
      missingFile: expect.stringContaining('tool-1.0.dist-info'),
      stale: [info],
    });
  }
  const twice = environmentWith({ ...files, ...whole('tool', '2.0') });
  expect((await lookAt(twice)).stale).toEqual([info, `${site}/tool-2.0.dist-info`]);
});

test('describes the state before an interrupted run', async () => {
  const copies = Object.entries(whole('tool', '1.0')).map(([name, text]) => [`.muster-work/${name}`, text]);
  const environment = environmentWith({ ...whole('tool', '2.0'), ...Object.fromEntries(copies) });
  const found = await lookAt(environment);
  expect(found).toMatchObject({ version: '1.0', isInterrupted: true, missingFile: null });
  expect(await packagePip.remember(declared(), found, diff({}), null, machineWith())).toMatchObject({ version: '1.0' });
  expect((await lookAt(environmentWith({ '.muster-partial': '.' }))).environment).toBe('partial');
});

test('recognizes legacy and editable installations', async () => {
  for (const entry of ['tool-1.0-py3.11.egg-info', 'tool.egg-info/PKG-INFO', 'tool.egg-link'])
    expect((await lookAt(environmentWith({ [`${site}/${entry}`]: '' }))).unmanaged, entry).toMatch(
      /setup\.py|editable/,
    );
  const url = (text: string) => whole('tool', '1.0', { [`${site}/tool-1.0.dist-info/direct_url.json`]: text });
  expect((await lookAt(environmentWith(url('{"dir_info":{"editable":true}}')))).unmanaged).toContain('editable');
  for (const text of ['null', '[]', '{"dir_info":1}', '{"dir_info":{"editable":1}}', '{', '['.repeat(60_000)])
    expect((await lookAt(environmentWith(url(text)))).unmanaged, text.slice(0, 40)).toBeNull();
});

test('reads hostile metadata within bounds', async () => {
  const start = performance.now();
  const hostile = [
    '\0',
    ',',
    '"',
    `"${'""'.repeat(500_000)}`,
    'a,'.repeat(500_000),
    '\n'.repeat(500_000),
    '../'.repeat(300_000),
  ];
  for (const text of hostile) {
    const info = `${site}/tool-1.0.dist-info`;
    const files = {
      [`${info}/RECORD`]: text,
      [`${info}/METADATA`]: text,
      [`${info}/INSTALLER`]: text,
      'pyvenv.cfg': text,
    };
    const environment = environmentWith({ ...whole('tool', '1.0'), ...files });
    expect((await lookAt(environment, {}, machineWith(), fresh)).version).toBe('1.0');
  }
  expect(performance.now() - start).toBeLessThan(5000);
  expect(recordedFiles('a.py,,\n"b,""c"".py",x,1\n/etc/passwd,,\n__pycache__/a.pyc,,\n\0,,\n')).toEqual([
    'a.py',
    'b,"c".py',
  ]);
  expect(recordedFiles(`a,,\n${'b'.repeat(6000)},,\nc`, true)).toEqual(['a']);
  expect(recordedFiles('a,,\n'.repeat(100_000)).length).toBeLessThanOrEqual(20_000);
  const metadata =
    'Name: x\nRequires-Dist: Part_A (>1); extra == "x"\nrequires-dist:b[c]\nRequires-Dist: -r x\n\nRequires-Dist: no';
  expect(requirementsOf(metadata)).toEqual(['part-a', 'b']);
  expect(parseConfig('Home = /a = b\nx\n=\n').get('home')).toBe('/a = b');
  for (const entry of [
    '-r-1.0.dist-info',
    '~ool-1.0.dist-info',
    'x.dist-info',
    'a-1-2.dist-info',
    `${'a'.repeat(300)}-1.dist-info`,
    'a-1;b.dist-info',
  ])
    expect(distributionOf(entry), entry).toBeNull();
});

test('reads only regular files', () => {
  const folder = environmentWith({ file: 'abc' });
  const { walk } = machineWith();
  execFileSync('mkfifo', [`${folder}/fifo`]);
  symlinkSync('/etc/passwd', `${folder}/link`);
  expect(readStart(walk, `${folder}/file`, 2)?.toString()).toBe('ab');
  for (const name of ['fifo', 'link', 'none', 'lib']) expect(readStart(walk, `${folder}/${name}`, 10), name).toBeNull();
  for (const name of ['.muster-partial', 'pyvenv.cfg']) {
    rmSync(`${folder}/${name}`, { force: true });
    symlinkSync('/etc/passwd', `${folder}/${name}`);
  }
  expect(environmentState(walk, folder)).toBe('other');
});

test('finds the dependencies that nothing needs, also in cycles', () => {
  const need = (name: string, requires: string[] = [], isDependency = true): Need => ({
    name,
    isDependency,
    isRequested: !isDependency,
    requires,
  });
  const needs = [
    ...[need('tool', ['part', 'shared'], false), need('other', ['shared'], false)],
    ...[need('part', ['loop']), need('loop', ['part']), need('shared'), need('pip')],
  ];
  expect(orphansIn(needs, 'tool', new Set(['pip']))).toEqual(['loop', 'part']);
  expect(orphansIn(needs, 'tool', new Set(['pip', 'loop']))).toEqual([]);
  expect(orphansIn(needs, null, new Set(['pip']))).toEqual([]);
});

test('keeps a package that others need, as a dependency', async () => {
  const kept = { version: '1.0', neededBy: ['other'], metadata: `${site}/tool-1.0.dist-info` };
  expect(removal({}, { ...kept, isRequested: true }).changes).toEqual([{ field: 'requested', from: 'yes', to: 'no' }]);
  expect(removal({}, kept)).toMatchObject({ action: 'none', message: 'kept: other may need it' });
  expect(removal({ version: '1.0' }, kept).action).toBe('none');
  const other = whole('other', '1.0', {
    [`${site}/other-1.0.dist-info/METADATA`]: 'Name: other\nVersion: 1.0\nRequires-Dist: Tool\n',
  });
  const requested = { [`${site}/tool-1.0.dist-info/REQUESTED`]: '' };
  const found = (files: Record<string, string>) =>
    lookAt(environmentWith({ ...whole('tool', '1.0'), ...other, ...files }), {}, machineWith(), fresh);
  expect(await found({ ...requested, [`${site}/other-1.0.dist-info/REQUESTED`]: '' })).toMatchObject({
    neededBy: ['other'],
    isRequested: true,
  });
  expect(await found({})).toMatchObject({ neededBy: [], orphans: ['other'], isRequested: false });
});

test('keeps dependencies that others requested, declared, or had before', async () => {
  const part = whole('part', '1.0');
  const requested = { [`${site}/part-1.0.dist-info/REQUESTED`]: '' };
  const uv = { [`${site}/part-1.0.dist-info/INSTALLER`]: 'uv' };
  const orphans = async (files: Record<string, string>, before: Partial<PipPackageBefore> = {}, name = '') => {
    const virtualenv = environmentWith({ ...whole('tool', '1.0'), ...part, ...files });
    const other = { ...declared({ name, virtualenv }), key: 'other' };
    return (await lookAt(virtualenv, {}, machineWith({ others: [other] }), { ...fresh, ...before })).orphans;
  };
  expect(await orphans({})).toEqual(['part']);
  expect(await orphans(requested)).toEqual([]);
  expect(await orphans(uv)).toEqual([]);
  expect(await orphans({}, { packages: ['part'] })).toEqual([]);
  expect(await orphans({}, {}, 'Part')).toEqual([]);
});

test('counts an environment as bare only if nothing was added', () => {
  const { walk } = machineWith();
  const list = '.\n./pyvenv.cfg\n./lib\n./lib/python3.11\n./lib/python3.11/site-packages\n';
  const bare = (files: Record<string, string>) => isBare(walk, environmentWith(files));
  expect(bare({ '.muster-created': list, [`${site}/__pycache__/a.pyc`]: '' })).toBe(true);
  expect(bare({})).toBe(false);
  for (const name of ['notes.txt', `${site}/a.py`, `${site}/a.pyc`, '__pycache__/notes.txt', 'bin/x', '.env'])
    expect(bare({ '.muster-created': list, [name]: '' }), name).toBe(false);
});

test('checks every path through which another user could redirect root', async () => {
  const environment = environmentWith(whole('tool', '1.0', { 'bin/x': '', [`${site}/x.pth`]: '/srv/src\n' }));
  symlinkSync('/usr/bin/env', `${environment}/bin/python3`);
  const unsafe = async (shared: string[] = [], user?: string) =>
    (await lookAt(environment, user === undefined ? {} : { user }, machineWith({ shared }))).unsafe;
  expect(await unsafe()).toBeNull();
  const paths = ['', '/bin', '/lib', '/lib/python3.11', `/${site}`].map((name) => `${environment}${name}`);
  for (const path of [dirname(environment), ...paths, '/usr/bin', '/srv/src'])
    for (const user of [undefined, 'root']) expect(await unsafe([path], user), path).toContain('users other than root');
  expect(await unsafe(paths, 'daemon')).toBeNull();
  chmodSync(`${environment}/pyvenv.cfg`, 0o664);
  expect(await unsafe()).toContain('make it a regular file that only root can write');
  writeFileSync(`${environment}/pyvenv.cfg`, `${config}include-system-site-packages = true\n`);
  chmodSync(`${environment}/pyvenv.cfg`, 0o644);
  expect(await unsafe()).toContain('includes the packages of the system');
  writeFileSync(`${environment}/pyvenv.cfg`, config.replace('/usr/bin', '/srv/python'));
  expect(await unsafe(['/srv/python'])).toContain('users other than root');
  rmSync(`${environment}/bin/python3`);
  symlinkSync('python3', `${environment}/bin/python3`);
  expect(await unsafe()).toContain('too many links');
});

test('shows the errors of pip, without the index', () => {
  const message = (stderr: string, index?: string, stdout = '', truncated = false) =>
    pipMessage({ stdout, stderr, exitCode: 1, truncated }, index);
  expect(message('WARNING: x\nERROR: No match for a==1 (from -r /proc/self/fd/3 (line 2))\nERROR: b\n')).toBe(
    'No match for a==1 b',
  );
  expect(message('', undefined, 'ensurepip is not available\n')).toBe('ensurepip is not available');
  expect(message('')).toBe('it ended with 1');
  const index = 'https://us%40er:pa55@x.example/t0ken/simple/';
  const text = `ERROR: us@er us%40er pa55 /t0ken/simple/a/ HTTPS://us%40er:****@x.example/t0ken/simple/`;
  expect(message(text, index)).not.toMatch(/us@er|us%40er|pa55|t0ken/);
  expect(message(text, index, '', true)).toBe('it ended with 1, and its output is too long to show');
  expect(message(`ERROR: ${'x'.repeat(5000)}`).length).toBeLessThan(1000);
});

test('checks the body again', () => {
  const check = (body: Partial<Body>) => () => packagePip.check(declared(body));
  expect(check({ version: '1.0', index_url: 'https://x.example/simple/' })).not.toThrow();
  for (const name of ['a[b]', '-r', 'a b', 'a==1', 'a\nb']) expect(check({ name }), name).toThrow('is not the name');
  expect(check({ version: '1\n--pre' })).toThrow('must be one version');
  expect(check({ index_url: 'https://x.example/?key=x' })).toThrow('must be an http or https URL');
  expect(check({ index_url: 'https://x.example/\n--pre' })).toThrow('must be an http or https URL');
  expect(check({ virtualenv: '/opt/../venv' })).toThrow('must not contain');
});
