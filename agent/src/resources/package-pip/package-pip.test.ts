import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ResourceBodies } from '@muster/protocol/module';
import { expect, onTestFinished, test } from 'vitest';
import { machineWith } from '../../converge/test/machine-with.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import { readStart } from '../../host/files/read-start.ts';
import type { Machine } from '../provider/provider.ts';
import type { OtherFile } from './declared-packages.ts';
import { diffPipPackage, diffPipPackageRemoval } from './diff.ts';
import {
  dependenciesOf,
  distributionOf,
  type Need,
  needsIn,
  orphansIn,
  recordedFiles,
  requirementsOf,
} from './distributions.ts';
import { environmentState, isBare, parseConfig } from './environment.ts';
import { packagePip } from './package-pip.ts';
import { pipMessage, runPip } from './run-pip.ts';
import { type DeclaredPackage, look, type PipPackageBefore, type SeenPipPackage } from './seen.ts';

type Body = ResourceBodies['package-pip'];
const declared = (fields: Partial<Body> = {}) =>
  ({
    type: 'package-pip',
    key: 'package-pip:tool#/opt/venv',
    identity: 'tool#/opt/venv',
    sensitive_fields: [],
    body: { name: 'tool', virtualenv: '/opt/venv', ...fields },
  }) as unknown as DeclaredPackage;
const seen = (fields: Partial<SeenPipPackage> = {}): SeenPipPackage => ({
  ...{ environment: 'present', version: null, unmanaged: null, isInterrupted: false, missingFile: null, stale: [] },
  ...{
    metadata: null,
    packages: [],
    orphans: [],
    neededBy: [],
    dependencies: [],
    broken: null,
    isRequested: false,
    files: [],
    unlisted: null,
    isBare: false,
    isParentMissing: false,
    unsafe: null,
    missing: [],
  },
  ...fields,
});
const diff = (body: Partial<Body>, now: Partial<SeenPipPackage> = {}, willBeThere = false) =>
  diffPipPackage(declared(body), seen(now), { purpose: 'apply', willBeThere: () => willBeThere });
const fresh: PipPackageBefore = { version: null, environment: 'absent', packages: [], dependencies: [] };
const removal = (before: Partial<PipPackageBefore>, now: Partial<SeenPipPackage>) =>
  diffPipPackageRemoval(declared(), { ...fresh, environment: 'present', ...before }, seen(now));

const site = 'lib/python3.11/site-packages';
const config = 'home = /usr/bin\nversion = 3.11.2\n';
/** Returns the files of a complete package. */
const whole = (name: string, version: string, files: Record<string, string> = {}): Record<string, string> => ({
  [`${site}/${name}.py`]: '',
  [`${site}/${name}-${version}.dist-info/METADATA`]: `Name: ${name}\nVersion: ${version}\n\n`,
  [`${site}/${name}-${version}.dist-info/RECORD`]: `${name}.py,,\n`,
  [`${site}/${name}-${version}.dist-info/INSTALLER`]: 'pip\n',
  ...files,
});

/** Creates a virtual environment that contains these files, given by name. */
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

test('removes a package that is declared absent, and the remains of an interrupted run', () => {
  expect(diff({ ensure: 'absent' }).action).toBe('none');
  expect(diff({ ensure: 'absent' }, { environment: 'absent' }).action).toBe('none');
  expect(diff({ ensure: 'absent' }, { environment: 'partial' }).action).toBe('remove');
  expect(diff({ ensure: 'absent' }, { isInterrupted: true }).action).toBe('remove');
  expect(diff({ ensure: 'absent' }, { version: '1.0' }).changes.map(({ field }) => field)).toEqual([
    'ensure',
    'version',
  ]);
});

test('refuses to change files that pip must not touch, but reports them as drift', () => {
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

test('restores the previous version, or removes the package, its dependencies, and the environment', () => {
  const fieldsOf = (...args: Parameters<typeof removal>) => removal(...args).changes.map(({ field }) => field);
  expect(fieldsOf({ version: '1.0' }, { version: '2.0' })).toEqual(['version']);
  expect(removal({ version: '1.0' }, { version: '1.0.0' }).action).toBe('none');
  expect(removal({ version: '1.0+a' }, { version: '1.0+A' }).action).toBe('none');
  expect(fieldsOf({ version: '2.1.0' }, { version: '2.1.0+cu121' })).toEqual(['version']);
  expect(fieldsOf({ version: '2.1.0+cu121' }, { version: '2.1.0' })).toEqual(['version']);
  expect(fieldsOf({ version: '1.0' }, { version: '1.0', orphans: ['part'] })).toEqual(['dependencies']);
  expect(fieldsOf({ version: '1.0' }, {})).toEqual(['ensure', 'version']);
  expect(fieldsOf({}, { version: '1.0', orphans: ['part'] })).toEqual(['ensure', 'version', 'dependencies']);
  expect(fieldsOf({}, { isBare: true })).toEqual(['virtualenv']);
  expect(fieldsOf({ environment: 'absent' }, { environment: 'empty' })).toEqual(['virtualenv']);
  expect(removal({ environment: 'empty' }, { environment: 'empty' }).action).toBe('none');
  expect(removal({}, {}).action).toBe('none');
});

test('reads the version of a package and detects missing files', async () => {
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

test('limits how much hostile metadata it reads', async () => {
  const start = process.threadCpuUsage();
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
  // Microseconds.
  expect(process.threadCpuUsage(start).user).toBeLessThan(5_000_000);
  expect(recordedFiles('a.py,,\n"b,""c"".py",x,1\n/etc/passwd,,\n__pycache__/a.pyc,,\n\0,,\n')).toEqual([
    'a.py',
    'b,"c".py',
  ]);
  expect(recordedFiles(`a,,\n${'b'.repeat(6000)},,\nc`, true)).toEqual(['a']);
  expect(recordedFiles('a,,\n'.repeat(100_000)).length).toBeLessThanOrEqual(20_000);
  const metadata =
    'Name: x\nRequires-Dist: Part_A (>1); extra == "x"\nrequires-dist:b[c]\nRequires-Dist: -r x\n\nRequires-Dist: no';
  const names = new Map(['part-a', 'b', 'no', 'x'].map((name) => [name, name]));
  expect(requirementsOf(metadata, names)).toEqual(['part-a', 'b']);
  expect(requirementsOf('Requires-Dist: elsewhere\nRequires-Dist: b\n', names)).toEqual(['b']);
  expect(distributionOf('tool-1.0+ubuntu_1.dist-info')?.version).toBe('1.0+ubuntu-1');
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

test('refuses more metadata than an environment should have', () => {
  const infos = Array.from({ length: 70 }, (_, i) => `${site}/p${i}-1.0.dist-info`);
  const environment = environmentWith(Object.fromEntries(infos.map((info) => [`${info}/METADATA`, ''])));
  const found = infos.flatMap((info) => distributionOf(info.slice(site.length + 1)) ?? []);
  const read = () => needsIn(machineWith().walk, `${environment}/${site}`, found);
  for (const info of infos.slice(0, 64)) truncateSync(`${environment}/${info}/METADATA`, 600 * 1024);
  expect(read()).toHaveLength(70);
  for (const info of infos) truncateSync(`${environment}/${info}/METADATA`, 600 * 1024);
  expect(read).toThrow('more metadata than a virtual environment should have');
});

test('reads an environment with a file or a link in place of metadata', async () => {
  const environment = environmentWith(whole('other', '1.0'));
  const path = (name: string) => `${environment}/${site}/${name}-1.0.dist-info`;
  symlinkSync('other-1.0.dist-info', path('part'));
  // The links in `.muster-work` give a file a second name.
  execFileSync('ln', [`${environment}/pyvenv.cfg`, path('tool')]);
  const shared = machineWith({ shared: [`${environment}/${site}`] });
  for (const machine of [machineWith(), shared]) {
    expect(await lookAt(environment, {}, machine, fresh)).toMatchObject({
      ...{ version: '1.0', unmanaged: null, missingFile: 'tool-1.0.dist-info', metadata: null },
      stale: [`${site}/tool-1.0.dist-info`],
    });
    expect(await lookAt(environment, { name: 'other' }, machine, fresh)).toMatchObject({ version: '1.0', stale: [] });
    expect((await lookAt(environment, { name: 'part' }, machine, fresh)).stale).toEqual([`${site}/part-1.0.dist-info`]);
  }
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

test('finds the dependencies that nothing needs, including cycles', () => {
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
  expect(dependenciesOf(needs, 'tool')).toEqual(['loop', 'part', 'shared']);
  expect(dependenciesOf(needs, 'none')).toEqual([]);
  expect(orphansIn(needs, 'tool', new Set(['pip']))).toEqual(['loop', 'part']);
  expect(orphansIn(needs, 'tool', new Set(['pip', 'loop']))).toEqual([]);
  expect(orphansIn(needs, null, new Set(['pip']))).toEqual([]);
});

const path = '/srv/requirements.txt';
const fileWith = (fields: Partial<OtherFile>): OtherFile => ({
  ...{ path, lists: false, isMissing: false, fault: null },
  ...fields,
});
const removalWith = (now: Partial<SeenPipPackage>, circumstances: Parameters<typeof diffPipPackageRemoval>[3]) =>
  diffPipPackageRemoval(
    declared(),
    { ...fresh, environment: 'present' },
    seen({ version: '1.0', ...now }),
    circumstances,
  );

test('plans the removal of a package that only the later content of a requirements file may list', () => {
  const unlisted = { orphans: ['part'], neededBy: [] };
  const expected = {
    action: 'remove',
    changes: [{ field: 'ensure' }, { field: 'version' }, { field: 'dependencies', from: 'part' }],
    message: 'removes the package, unless the later content of /srv/requirements.txt lists it',
  };
  const changing = { willChange: (each: string) => each === path };
  for (const fields of [{ lists: true }, {}, { fault: 'line 2' }])
    expect(removalWith({ files: [fileWith(fields)], unlisted }, changing)).toMatchObject(expected);
  const missing = [fileWith({ isMissing: true })];
  expect(removalWith({ files: missing, unlisted }, { willBeThere: (each) => each === path })).toMatchObject(expected);
  expect(removalWith({ files: missing, unlisted }, {}).message).toBe('removes the package');
  // A file that stays as it is decides.
  const other = { path: '/srv/other.txt', lists: true };
  expect(removalWith({ files: [fileWith({}), fileWith(other)], unlisted }, changing).action).toBe('none');
  expect(() => removalWith({ files: [fileWith({ fault: 'line 2' })], unlisted }, {})).toThrow('line 2');
});

test('reads the requirements files of other resources, with their markers, after all earlier resources', async () => {
  const virtualenv = environmentWith({
    ...{ ...whole('tool', '1.0'), 'win.txt': 'tool; sys_platform == "win32"\n', 'bad.txt': '-r x\n' },
    ...{ 'linux.txt': 'part\ntool; sys_platform == "linux" and python_version == "3.11"\n' },
  });
  const at = (name: string) => join(virtualenv, name);
  const others = ['win.txt', 'linux.txt', 'none.txt', 'bad.txt', 'win.txt'].map((name) => {
    const { name: _, ...body } = declared({ virtualenv, requirements: at(name) }).body;
    return { ...declared(), key: name, body } as unknown as DeclaredPackage;
  });
  const { files, unlisted } = await lookAt(virtualenv, {}, machineWith({ others }), fresh);
  expect(files).toEqual([
    fileWith({ path: at('win.txt') }),
    fileWith({ path: at('linux.txt'), lists: true }),
    fileWith({ path: at('none.txt'), isMissing: true }),
    fileWith({ path: at('bad.txt'), fault: expect.stringContaining('line 1: -r is refused') }),
  ]);
  expect(unlisted).toEqual({ orphans: [], neededBy: [] });
  expect(packagePip.reads?.(declared())).toContain('/');
});

test('keeps a package that others need, and marks it as a dependency', async () => {
  const kept = { version: '1.0', neededBy: ['other'], metadata: `${site}/tool-1.0.dist-info` };
  expect(removal({}, { ...kept, isRequested: true }).changes).toEqual([{ field: 'requested', from: 'yes', to: 'no' }]);
  for (const version of [null, '0.9'])
    expect(removal({ version }, { version: '1.0', files: [fileWith({ lists: true })] })).toMatchObject({
      ...{ action: 'none', message: 'kept: a requirements file lists it' },
    });
  expect(removal({}, kept)).toMatchObject({ action: 'none', message: 'kept: other may need it' });
  expect(removal({}, { ...kept, isInterrupted: true })).toMatchObject({
    action: 'remove',
    changes: [{ field: 'files', from: 'interrupted', to: 'complete' }],
    message: 'kept: other may need it',
  });
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
  expect(await found({})).toMatchObject({ neededBy: ['other'], orphans: [], isRequested: false });
});

test('keeps dependencies that were requested, declared, or already installed', async () => {
  const part = whole('part', '1.0');
  const requested = { [`${site}/part-1.0.dist-info/REQUESTED`]: '' };
  const needing = { [`${site}/tool-1.0.dist-info/METADATA`]: 'Name: tool\nVersion: 1.0\nRequires-Dist: part\n' };
  const tool = whole('tool', '1.0', { [`${site}/tool-1.0.dist-info/REQUESTED`]: '', ...needing });
  const uv = { [`${site}/part-1.0.dist-info/INSTALLER`]: 'uv' };
  const orphans = async (files: Record<string, string>, before: Partial<PipPackageBefore> = {}, name = '') => {
    const virtualenv = environmentWith({ ...tool, ...part, ...files });
    const other = { ...declared({ name, virtualenv }), key: 'other' };
    return (await lookAt(virtualenv, {}, machineWith({ others: [other] }), { ...fresh, ...before })).orphans;
  };
  expect(await orphans({})).toEqual(['part']);
  expect(await orphans(requested)).toEqual([]);
  expect(await orphans(uv)).toEqual([]);
  expect(await orphans({}, { packages: ['part'] })).toEqual([]);
  expect(await orphans({}, {}, 'Part')).toEqual([]);
  const virtualenv = environmentWith({ ...tool, ...part });
  const link = `${mkdtempSync(join(tmpdir(), 'pip-link-'))}/link`;
  onTestFinished(() => rmSync(dirname(link), { recursive: true }));
  symlinkSync(dirname(virtualenv), link);
  const other = { ...declared({ name: 'part', virtualenv: link + virtualenv.slice(dirname(virtualenv).length) }) };
  const linked = { ...machineWith({ others: [{ ...other, key: 'other' }] }), walk: new PathWalk() };
  expect((await lookAt(virtualenv, {}, linked, fresh)).orphans).toEqual([]);
  const many = Array.from({ length: 1500 }, (_, i) => `p${i}`);
  const environment = environmentWith(
    Object.fromEntries(many.map((name) => [`${site}/${name}-1.0.dist-info/INSTALLER`, ''])),
  );
  expect((await lookAt(environment)).packages).toHaveLength(1500);
});

test('counts only dependencies of the package as orphans, and none if pip does not record requested packages', async () => {
  const requested = { [`${site}/tool-1.0.dist-info/REQUESTED`]: '' };
  const needing = { [`${site}/tool-1.0.dist-info/METADATA`]: 'Name: tool\nVersion: 1.0\nRequires-Dist: part\n' };
  const others = { ...whole('part', '1.0'), ...whole('stranger', '1.0'), ...whole('old', '1.0') };
  const found = (files: Record<string, string>, before: Partial<PipPackageBefore> = {}) =>
    lookAt(environmentWith({ ...whole('tool', '1.0'), ...others, ...files }), {}, machineWith(), {
      ...fresh,
      ...before,
    });
  expect(await found({ ...requested, ...needing })).toMatchObject({ orphans: ['part'], dependencies: ['part'] });
  expect((await found({ ...needing, [`${site}/pip-1.0.dist-info/REQUESTED`]: '' })).orphans).toEqual([]);
  expect((await found({ ...requested, ...needing }, { dependencies: ['old'] })).orphans).toEqual(['old', 'part']);
  // The requirements of an uninstalled package are unknown.
  expect((await lookAt(environmentWith({ ...others, ...requested }), {}, machineWith(), fresh)).orphans).toEqual([]);
  // The previous version is restored, so only the dependencies of the later version can be orphans.
  expect((await found({ ...requested }, { version: '1.0', dependencies: ['part'] })).orphans).toEqual(['part']);
  expect((await found({ ...requested, ...needing }, { version: '1.0', dependencies: ['part'] })).orphans).toEqual([]);
});

test('records the dependencies of a version that it replaces', async () => {
  const needing = { [`${site}/tool-1.0.dist-info/METADATA`]: 'Name: tool\nVersion: 1.0\nRequires-Dist: part\n' };
  const virtualenv = environmentWith({ ...whole('tool', '1.0'), ...whole('part', '1.0'), ...needing });
  const resource = declared({ virtualenv });
  const machine = machineWith();
  const now = await look(resource, machine, null);
  const remember = (before: PipPackageBefore | null) =>
    packagePip.remember(resource, now, diff({}), before, machine) as Promise<PipPackageBefore>;
  expect(await remember({ ...fresh, dependencies: ['old'] })).toEqual({ ...fresh, dependencies: ['old', 'part'] });
  expect(await remember(null)).toMatchObject({ version: '1.0', packages: ['part', 'tool'], dependencies: ['part'] });
});

test('detects an interpreter that does not match the environment', async () => {
  const environment = environmentWith(whole('tool', '1.0', { 'bin/x': '' }));
  const broken = async () => (await lookAt(environment)).broken;
  expect(await broken()).toBe('bin/python3 leads to no program');
  const interpreter = (name: string) => {
    rmSync(`${environment}/bin/python3`, { force: true });
    writeFileSync(`${environment}/${name}`, '', { mode: 0o755 });
    symlinkSync(`../${name}`, `${environment}/bin/python3`);
  };
  interpreter('python3.11');
  expect(await broken()).toBeNull();
  interpreter('python3.12');
  expect(await broken()).toBe('bin/python3 is Python 3.12, but the packages are in lib/python3.11');
  interpreter('python');
  expect(await broken()).toBeNull();
  writeFileSync(`${environment}/pyvenv.cfg`, 'version = 3.13.1\n');
  expect(await broken()).toBe('bin/python3 is Python 3.13, but the packages are in lib/python3.11');
  const drift = diffPipPackage(declared(), seen({ version: '1', broken: 'x' }), {
    purpose: 'drift',
    willBeThere: () => false,
  });
  expect(drift.changes).toEqual([{ field: 'virtualenv', from: 'x', to: 'present' }]);
  const moved = '/opt/venv: x: move it away, and apply again';
  expect(() => diff({}, { version: '1', broken: 'x' })).toThrow(moved);
  expect(() => removal({}, { version: '1', broken: 'x' })).toThrow(moved);
  const missing: SeenPipPackage['missing'] = [{ kind: 'programs', message: 'y' }];
  expect(diff({}, { version: '1', broken: 'x', missing }).awaits).toEqual(missing);
});

/** Creates an environment with a fake pip that writes its requirements to the file `asked` and changes nothing else. */
function environmentWithIdlePip(files: Record<string, string>) {
  const environment = environmentWith(files);
  mkdirSync(`${environment}/bin`, { recursive: true });
  const program = `#!/bin/sh\ncat /proc/self/fd/3 > '${environment}/asked'\n`;
  writeFileSync(`${environment}/bin/python3`, program, { mode: 0o755 });
  const machine = {
    ...machineWith(),
    ...{ environment: {}, limits: { packageMs: 20_000 }, startedProcess: () => undefined, printed: () => undefined },
  } as unknown as Machine;
  (machine.walk as { forget?: () => void }).forget = () => undefined;
  return { machine, resource: (body: Partial<Body>) => declared({ virtualenv: environment, ...body }), environment };
}

test('fails if the package is still there after pip uninstalled it', async () => {
  const { machine, resource } = environmentWithIdlePip(whole('tool', '1.0'));
  const absent = resource({ ensure: 'absent' });
  const now = await look(absent, machine, null);
  await expect(packagePip.apply(absent, now, diff({}), machine)).rejects.toThrow(
    'pip succeeded, but did not uninstall the package',
  );
});

test('requests exactly the previous version from pip', async () => {
  const { machine, resource, environment } = environmentWithIdlePip(whole('tool', '2.1.0+cu121'));
  const before = { ...fresh, environment: 'present', version: '2.1.0' } as const;
  const now = await look(resource({}), machine, before);
  await expect(packagePip.remove(resource({}), before, now, diff({}), machine)).rejects.toThrow(
    'installed the version 2.1.0+cu121',
  );
  expect(readFileSync(`${environment}/asked`, 'utf8')).toBe('tool===2.1.0\n');
  expect(existsSync(`${environment}/.muster-work`)).toBe(false);
});

test('limits the number of packages in the error if pip cannot uninstall them', async () => {
  const { machine, resource, environment } = environmentWithIdlePip(whole('tool', '1.0'));
  writeFileSync(`${environment}/bin/python3`, '#!/bin/sh\nexit 1\n');
  const names = Array.from({ length: 1000 }, (_, i) => `package-${i}`);
  const run = runPip(resource({}), { action: 'uninstall', names }, { environment: 'present' }, machine);
  await expect(run).rejects.toThrow(/^pip cannot uninstall package-0, package-1, .{500,1200}$/);
});

test('treats an environment as unmodified only if nothing was added to it', () => {
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
  for (const text of [`/srv/src\n${'#'.repeat(70_000)}\n`, '/srv/src\n'.repeat(1001)]) {
    writeFileSync(`${environment}/${site}/x.pth`, text);
    expect(await unsafe()).toContain('x.pth is too long');
  }
  writeFileSync(`${environment}/${site}/x.pth`, '/srv/src\n');
  chmodSync(`${environment}/pyvenv.cfg`, 0o664);
  expect(await unsafe()).toContain('make it a regular file that only root can write');
  writeFileSync(`${environment}/pyvenv.cfg`, `${config}include-system-site-packages = true\n`);
  chmodSync(`${environment}/pyvenv.cfg`, 0o644);
  expect(await unsafe()).toContain('includes the system packages');
  writeFileSync(`${environment}/pyvenv.cfg`, config.replace('/usr/bin', '/srv/python'));
  expect(await unsafe(['/srv/python'])).toContain('users other than root');
  rmSync(`${environment}/bin/python3`);
  symlinkSync('python3', `${environment}/bin/python3`);
  expect(await unsafe()).toContain('too many links');
});

test('reports the errors of pip without the URL of the index', () => {
  const message = (stderr: string, index?: string, stdout = '', truncated = false) =>
    pipMessage({ stdout, stderr, exitCode: 1, truncated }, index);
  expect(message('WARNING: x\nERROR: No match for a==1 (from -r /proc/self/fd/3 (line 2))\nERROR: b\n')).toBe(
    'No match for a==1 b',
  );
  expect(message('', undefined, 'ensurepip is not available\n')).toBe('ensurepip is not available');
  expect(message('')).toBe('it exited with 1');
  const index = 'https://us%40er:pa55@x.example/t0ken/simple/';
  const text = `ERROR: us@er us%40er pa55 /t0ken/simple/a/ HTTPS://us%40er:****@x.example/t0ken/simple/`;
  expect(message(text, index)).not.toMatch(/us@er|us%40er|pa55|t0ken/);
  for (const [url, printed] of [
    ['https://x.example/se%2fcretAB/simple/', '/se%2FcretAB/simple/x/'],
    ['https://tok!enAB@x.example/simple/', 'tok%21enAB'],
    ['https://x.example/a:b@cAB/', '(a%3Ab@cAB)'],
    ['https://x.example/%41bc%2FdE/', 'Abc%2FdE'],
  ] as const)
    expect(message(`ERROR: No match, url: ${printed} for a==1 (from -r /proc/self/fd/3 (line 2))\n`, url)).toBe(
      'No match, url: … for a==1',
    );
  expect(message('ERROR: /opt/venv is not empty')).toBe('/opt/venv is not empty');
  expect(message(text, index, '', true)).toBe('it exited with 1, and its output is too long to show');
  expect(message(`ERROR: ${'x'.repeat(5000)}`).length).toBeLessThan(1000);
});

test('refuses invalid names, versions, and URLs in a received body', () => {
  const check = (body: Partial<Body>) => () => packagePip.check(declared(body));
  expect(check({ version: '1.0', index_url: 'https://x.example/simple/' })).not.toThrow();
  for (const name of ['a[b]', '-r', 'a b', 'a==1', 'a\nb']) expect(check({ name }), name).toThrow('is not the name');
  expect(check({ version: '1\n--pre' })).toThrow('must be one version');
  expect(check({ index_url: 'https://x.example/?key=x' })).toThrow('must be an http or https URL');
  expect(check({ index_url: 'https://x.example/\n--pre' })).toThrow('must be an http or https URL');
  expect(check({ virtualenv: '/opt/../venv' })).toThrow('must not contain');
});
