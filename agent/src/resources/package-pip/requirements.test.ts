import { expect, test } from 'vitest';
import type { Need } from './distributions.ts';
import { markerVariables } from './markers.ts';
import {
  briefRequirements,
  lackingForExtras,
  linesOfDamaged,
  recordOf,
  type SeenRequirements,
  whyUnsafeFile,
} from './requirements.ts';
import { diffRequirements, diffRequirementsRemoval } from './requirements-diff.ts';
import { decideRemoval } from './requirements-removal.ts';
import type { DeclaredRequirements, RequirementsBefore } from './seen.ts';

const resource = {
  type: 'package-pip',
  body: { requirements: '/srv/app/requirements.txt', virtualenv: '/opt/venv' },
} as unknown as DeclaredRequirements;
const seen = (fields: Partial<SeenRequirements> = {}): SeenRequirements => ({
  ...{ environment: 'present', isInterrupted: false, broken: null, isParentMissing: false, unsafe: null, missing: [] },
  ...{ isBare: false, stale: [], lines: ['tool>=2'], names: ['tool'], unmet: [], damaged: [], unmanaged: null },
  ...{ versions: {}, removal: null, fault: null, unsafeFile: null, files: [], unlisted: null },
  ...fields,
});
const unmet = [
  { name: 'tool', found: '1.0', wanted: 'tool>=2' },
  { name: 'other', found: null, wanted: 'other' },
];

test('plans only the requirements that are not satisfied', () => {
  expect(diffRequirements(resource, seen(), { purpose: 'apply' }).action).toBe('none');
  expect(diffRequirements(resource, seen({ unmet }), { purpose: 'apply' })).toMatchObject({
    action: 'update',
    changes: [{ field: 'requirements', from: 'tool 1.0, other absent', to: 'tool>=2, other' }],
  });
  expect(diffRequirements(resource, seen({ environment: 'absent', unmet }), { purpose: 'apply' })).toMatchObject({
    action: 'create',
    changes: [{ field: 'requirements' }, { field: 'virtualenv', from: null, to: 'present' }],
  });
  const damaged = [{ name: 'tool', line: 'tool==2', file: 'tool.py' }];
  expect(diffRequirements(resource, seen({ damaged }), { purpose: 'drift' }).changes).toEqual([
    { field: 'files', from: 'tool without tool.py', to: 'complete' },
  ]);
});

test('waits for the file, whose absence is no drift', () => {
  const missing = seen({ lines: null });
  expect(diffRequirements(resource, missing, { purpose: 'drift' }).action).toBe('none');
  expect(diffRequirements(resource, missing, { purpose: 'apply' })).toMatchObject({
    changes: [{ to: 'the later content of /srv/app/requirements.txt' }],
    awaits: [{ message: expect.stringContaining('there is no requirements file /srv/app/requirements.txt') }],
  });
  expect(diffRequirements(resource, missing, { purpose: 'apply', willBeThere: () => true }).awaits).toBeUndefined();
  expect(diffRequirements(resource, seen(), { purpose: 'apply', willChange: () => true }).changes).toHaveLength(1);
});

test('fails because of the current file, unless an earlier resource will change it', () => {
  const later = { purpose: 'plan', willChange: () => true } as const;
  const unmanaged = { name: 'tool', why: 'an editable installation' };
  for (const fields of [
    { lines: null, fault: 'line 2' },
    { unmet, unsafeFile: 'line 2' },
  ]) {
    expect(() => diffRequirements(resource, seen(fields), { purpose: 'plan' })).toThrow('line 2');
    const difference = diffRequirements(resource, seen({ ...fields, unmanaged }), later);
    expect(difference.changes).toMatchObject([{ to: 'the later content of /srv/app/requirements.txt' }]);
    expect(difference.awaits).toBeUndefined();
  }
  expect(() => diffRequirements(resource, seen({ lines: null, fault: 'line 2' }), { purpose: 'drift' })).toThrow();
});

test('accepts only a file that other users cannot write', () => {
  const why = (uid: number, mode: number, account: { uid: number; name: string } | null) =>
    whyUnsafeFile('/f', { uid, mode }, account);
  const root = { uid: 0, name: 'root' };
  const ada = { uid: 1001, name: 'ada' };
  for (const account of [null, root]) {
    expect(why(0, 0o644, account)).toBeNull();
    for (const mode of [0o664, 0o646]) expect(why(0, mode, account), String(mode)).toMatch(/only root can write/);
    expect(why(1001, 0o644, account)).toMatch(/only root can write/);
  }
  expect(why(1001, 0o644, ada)).toBeNull();
  expect(why(0, 0o644, ada)).toBeNull();
  for (const [uid, mode] of [
    [1001, 0o646],
    [1001, 0o664],
    [1002, 0o644],
  ] as const)
    expect(why(uid, mode, ada), `${uid} ${mode}`).toBe(
      'pip of ada reads /f: make it a file that only root and ada can write',
    );
});

test('installs damaged packages with the requirement of hashes, and journals no lines', () => {
  const damaged = [{ name: 'tool', line: 'tool==2', file: 'tool.py' }];
  expect(linesOfDamaged({ lines: ['--require-hashes', 'tool==2'], damaged })).toEqual(['--require-hashes', 'tool==2']);
  expect(linesOfDamaged({ lines: ['tool==2', 'other'], damaged })).toEqual(['tool==2']);
  expect(briefRequirements(seen({ damaged }))).toMatchObject({ lines: [], damaged: [{ name: 'tool', line: '' }] });
  expect(briefRequirements(seen({ lines: null })).lines).toBeNull();
});

test('refuses packages and environments that pip must not change', () => {
  const unmanaged = { name: 'tool', why: 'an editable installation' };
  expect(() => diffRequirements(resource, seen({ unmet, unmanaged }), { purpose: 'apply' })).toThrow(
    'tool in /opt/venv is an editable installation',
  );
  expect(() => diffRequirements(resource, seen({ unmet, unsafe: 'unsafe' }), { purpose: 'apply' })).toThrow('unsafe');
  expect(diffRequirements(resource, seen({ unmet, unsafe: 'unsafe' }), { purpose: 'drift' }).action).toBe('update');
});

const need = (name: string, requires: string[] = [], isDependency = false): Need => ({
  ...{ name, isRequested: !isDependency, isDependency, requires },
});
const decide = (
  packages: Record<string, string>,
  needs: Need[],
  before: Partial<RequirementsBefore>,
  declared: string[] = [],
) =>
  decideRemoval({
    needs,
    installed: Object.entries(packages).map(([name, version]) => ({
      ...{ name, version, entry: `${name}-${version}.dist-info`, isLegacy: false },
    })),
    unmanaged: [],
    before: { environment: 'present', versions: {}, names: [], dependencies: [], automatic: [], ...before },
    declared,
    site: 'lib/site',
  });

test('records the versions that someone else installed after the first change', () => {
  const first = recordOf(null, { environment: 'present', versions: { part: '1' }, names: ['tool'] }, [
    need('part', [], true),
  ]);
  expect(first).toEqual({
    ...{ environment: 'present', versions: { part: '1' }, names: ['tool'], dependencies: ['tool'] },
    automatic: ['part'],
  });
  const needs = [need('tool', ['deep', 'part']), need('deep', [], true), need('part'), need('mine', [], true)];
  const versions = { tool: '1', part: '2', deep: '1', mine: '1' };
  const names = ['tool', 'deep', 'mine', 'other'];
  const next = recordOf(first, { environment: 'present', versions, names }, needs);
  expect(next.versions).toEqual({ part: '1', mine: '1' });
  expect(next.names).toEqual(names);
  expect(next.automatic).toEqual(['part', 'mine']);
  expect(next.dependencies.toSorted()).toEqual(['deep', 'mine', 'other', 'part', 'tool']);
});

test('restores former versions, also of dependencies, and uninstalls what the file brought', () => {
  const needs = [need('tool', ['part']), need('part', ['deep'], true), need('deep', [], true), need('mine', [], true)];
  expect(
    decide({ tool: '2.0', part: '1.0', deep: '2.0', mine: '1.0' }, needs, {
      names: ['tool', 'gone'],
      versions: { deep: '1.0', mine: '1.0', gone: '3.0' },
    }),
  ).toMatchObject({
    restore: [
      { name: 'gone', from: null, to: '3.0' },
      { name: 'deep', from: '2.0', to: '1.0' },
    ],
    uninstall: [
      { name: 'tool', from: '2.0' },
      { name: 'part', from: '1.0' },
    ],
    ...{ kept: [], marks: [] },
  });
});

test('keeps packages that others need or declare', () => {
  const needs = [need('app', ['tool']), need('tool', ['part']), need('part', [], true), need('other')];
  const packages = { app: '1', tool: '1', part: '1', other: '1' };
  expect(decide(packages, needs, { names: ['tool', 'other'] }, ['other'])).toMatchObject({
    ...{ restore: [], uninstall: [], kept: ['tool'] },
    marks: [{ name: 'tool', path: 'lib/site/tool-1.dist-info/REQUESTED' }],
  });
  expect(decide(packages, needs, { names: ['pip', 'part'] }).kept).toEqual(['part']);
});

test('turns a restored package into a dependency again', () => {
  const needs = [need('tool', ['part']), need('mine', ['part']), need('part')];
  const before = { names: ['tool'], versions: { mine: '1', part: '1' }, automatic: ['part'] };
  const replaced = { tool: '2', mine: '1', part: '2' };
  expect(decide(replaced, needs, before)).toMatchObject({ restore: [{ name: 'part' }], marks: [] });
  const restored = { mine: '1', part: '1' };
  const rest = needs.slice(1);
  const marks = [{ name: 'part', path: 'lib/site/part-1.dist-info/REQUESTED' }];
  const killed = { ...before, dependencies: ['tool', 'part'] };
  expect(decide(restored, rest, killed)).toMatchObject({ restore: [], uninstall: [], marks });
  for (const declared of [['part'], ['mine', 'part']])
    expect(decide(restored, rest, killed, declared).marks).toEqual([]);
  expect(decide(restored, rest, { ...killed, automatic: [] }).marks).toEqual([]);
});

test('keeps the versions of packages that other resources need', () => {
  const needs = [need('app', ['part']), need('tool', ['part', 'deep']), need('part', [], true), need('deep', [], true)];
  const versions = { part: '1', deep: '1', tool: '1' };
  const packages = { app: '1', tool: '2', part: '2', deep: '2' };
  expect(decide(packages, needs, { names: ['tool'], versions }, ['app']).restore).toEqual([
    { name: 'tool', from: '2', to: '1' },
    { name: 'deep', from: '2', to: '1' },
  ]);
});

test('decides about many packages in linear time', () => {
  const names = Array.from({ length: 2000 }, (_, i) => `n${i}`);
  const needs = names.map((name, i) => need(name, names.slice(i + 1, i + 2)));
  const packages = Object.fromEntries([...names, 'root'].map((name) => [name, '1']));
  const started = process.cpuUsage();
  expect(decide(packages, [need('root', ['n0']), ...needs], { names }).kept).toHaveLength(2000);
  const { user, system } = process.cpuUsage(started);
  expect(user + system).toBeLessThan(2_000_000);
});

test('describes a removal', () => {
  const before: RequirementsBefore = {
    ...{ environment: 'absent', versions: {}, names: ['tool'], dependencies: [], automatic: [] },
  };
  const removal = {
    restore: [{ name: 'part', from: '2', to: '1' }],
    uninstall: [{ name: 'tool', from: '2' }],
    ...{ kept: ['six'], marks: [], dependencies: [] },
  };
  expect(diffRequirementsRemoval(resource, before, seen({ removal }))).toMatchObject({
    action: 'remove',
    changes: [{ field: 'requirements', from: 'part 2, tool 2', to: 'part 1' }],
    message: 'restores the original state; kept: other packages may need six',
  });
  const nothing = { restore: [], uninstall: [], kept: [], marks: [], dependencies: [] };
  expect(diffRequirementsRemoval(resource, before, seen({ removal: nothing })).action).toBe('none');
  expect(diffRequirementsRemoval(resource, before, seen({ removal: nothing, isBare: true })).changes).toEqual([
    { field: 'virtualenv', from: 'present', to: null },
  ]);
});

test('plans a removal without the packages of a requirements file that an earlier resource changes', () => {
  const before: RequirementsBefore = {
    ...{ environment: 'present', versions: {}, names: ['tool', 'six'], dependencies: [], automatic: [] },
  };
  const rest = { restore: [], kept: [], marks: [], dependencies: [] };
  const now = (fault: string | null) =>
    seen({
      removal: { ...rest, uninstall: [{ name: 'six', from: '1' }] },
      files: [{ path: '/srv/other.txt', lists: true, isMissing: false, fault }],
      unlisted: { ...rest, uninstall: ['six', 'tool'].map((name) => ({ name, from: '1' })) },
    });
  expect(diffRequirementsRemoval(resource, before, now(null))).toMatchObject({
    ...{ changes: [{ from: 'six 1' }], message: 'restores the original state' },
  });
  expect(() => diffRequirementsRemoval(resource, before, now('line 2'))).toThrow('line 2');
  for (const fault of [null, 'line 2'])
    expect(diffRequirementsRemoval(resource, before, now(fault), { willChange: () => true })).toMatchObject({
      changes: [{ from: 'six 1, tool 1' }],
      message: 'restores the original state, unless the later content of /srv/other.txt lists the packages',
    });
});

test('finds packages that extras need', () => {
  const lines = [
    'part>=2; extra == "More"',
    'six; extra == "less"',
    'always',
    'win; extra == "more" and os_name == "nt"',
  ];
  const lacking = (extras: string[], ...all: { name: string; version: string }[]) =>
    lackingForExtras([{ extras }, { extras: [] }], () => lines, all, markerVariables('3.11.2'));
  expect(lacking([])).toBeUndefined();
  expect(lacking(['more'])).toBe('part>=2');
  expect(lacking(['more'], { name: 'part', version: '1.0' })).toBe('part>=2');
  expect(lacking(['more'], { name: 'part', version: '2.0' })).toBeUndefined();
});
