import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { HostFailure } from '../../host/failure.ts';
import { type Difference, type Machine, nothing } from '../provider/provider.ts';
import { diffPackage } from './diff.ts';
import { mustBeHeld, mustBeReleased } from './hold.ts';
import { byRecommends, installArguments, installGroups } from './install.ts';
import { diffPackageRemoval, packageApt } from './package-apt.ts';
import { debMisfit, type PackageBefore, type PackageItem, type SeenPackage } from './seen.ts';

const seen = (more: Partial<SeenPackage> = {}): SeenPackage => ({
  state: 'installed',
  whole: true,
  version: '1.0',
  held: false,
  auto: false,
  offer: null,
  ...more,
});
const absent = seen({ state: 'not-installed', version: null });
const offer = (candidate: string | null, more: Partial<NonNullable<SeenPackage['offer']>> = {}) => ({
  candidate,
  offered: [],
  providers: [],
  trouble: null,
  ...more,
});

const diff = (
  body: Partial<ResourceBodies['package-apt']>,
  found: SeenPackage,
  purpose: 'apply' | 'plan' | 'drift' = 'apply',
) => diffPackage({ type: 'package-apt', body: { name: 'foo', ...body } } as ResolvedResource, found, { purpose });

test('installs packages with and without their recommended packages in separate transactions', () => {
  const common = { version: null, file: null, again: false };
  const requested = (name: string, recommends: boolean | null) => ({ ...common, name, recommends });
  const all = [requested('a', null), requested('b', false), requested('c', null), requested('d', true)];
  expect(byRecommends(all).map((some) => installArguments(some).join(' '))).toEqual([
    'install --no-install-recommends --allow-downgrades --no-remove -- b',
    'install --allow-downgrades --no-remove -- a c',
    'install --install-recommends --allow-downgrades --no-remove -- d',
  ]);
  expect(diff({ recommends: false }, seen()).action).toBe('none');
  expect(byRecommends([])).toEqual([]);
  expect(diff({ recommends: false }, { ...absent, offer: offer('2.0') }).changes).toContainEqual({
    field: 'recommends',
    from: null,
    to: 'false',
  });
});

test('passes the path of a package file to apt instead of the name', () => {
  const common = { again: false, recommends: null };
  const requested = [
    { ...common, name: 'a', version: '1.0', file: '/contents/0.deb' },
    { ...common, name: 'b', version: '2.0', file: null },
  ];
  expect(installArguments(requested).join(' ')).toBe('install --allow-downgrades --no-remove -- /contents/0.deb b=2.0');
});

test('starts no transaction after one that timed out', async () => {
  const requested = [true, false].map((recommends) => ({
    name: recommends ? 'b' : 'a',
    version: null,
    file: null,
    again: false,
    recommends,
  }));
  const started: string[] = [];
  const machine = { database: async () => ({ packages: new Map() }) } as unknown as Machine;
  const failures = await installGroups(requested, machine, async (some) => {
    started.push(...some.map(({ name }) => name));
    return { failures: new Map([['a', { failure: 'stopped' }]]), stuck: true };
  });
  expect(started).toEqual(['a']);
  expect([...failures.keys()]).toEqual(['a', 'b']);
});

describe('a package', () => {
  test('changes nothing if any version is installed and none is declared', () => {
    expect(diff({}, seen()).action).toBe('none');
    expect(diff({ version: '1.0' }, seen()).action).toBe('none');
    expect(diff({ ensure: 'absent' }, absent).action).toBe('none');
    expect(diff({ ensure: 'absent' }, seen({ state: 'config-files', version: null })).action).toBe('none');
  });

  test('installs a missing package, or waits for one that no source offers', () => {
    expect(diff({}, { ...absent, offer: offer('2.0') })).toMatchObject({
      action: 'create',
      changes: [{ field: 'ensure', from: 'absent', to: 'present' }],
    });
    expect(diff({}, { ...absent, offer: offer(null) }).awaits).toMatchObject([
      { kind: 'packages', message: 'no source of this machine offers a package foo' },
    ]);
    expect(diff({}, { ...absent, offer: offer(null, { providers: ['a', 'b'] }) }).awaits?.[0]?.message).toMatch(
      /virtual package.*a, b$/,
    );
    expect(diff({ version: '9' }, { ...absent, offer: offer('2', { offered: ['2', '1'] }) }).awaits?.[0]?.message).toBe(
      'no source of this machine offers foo 9, only 2, 1',
    );
  });

  test('changes to the exact declared version, and reports a downgrade', () => {
    const found = seen({ version: '2.0', offer: offer('2.0', { offered: ['2.0', '1.0'] }) });
    expect(diff({ version: '1.0' }, found)).toMatchObject({
      action: 'update',
      changes: [{ field: 'version', from: '2.0', to: '1.0' }],
      message: '1.0 is older than 2.0, so this is a downgrade',
    });
  });

  test('keeps an installed version that matches a pattern or a lower bound; otherwise chooses a version', () => {
    const offered = ['5:20.1', '20.9', '20.10', '19.1'];
    const found = (version: string | null) =>
      version === null
        ? { ...absent, offer: offer('20.9', { offered }) }
        : seen({ version, offer: offer('20.9', { offered }) });
    for (const [range, version] of [
      ['20.*', '20.0-1'],
      ['*', '1'],
      ['20.*-1', '20.0-1'],
      ['>=20.1', '20.1'],
      ['>= 20.1', '1:1'],
    ] as const) {
      expect(diff({ version: range }, found(version)).action, range).toBe('none');
      expect(diff({ version: range }, found(version), 'drift').action, range).toBe('none');
    }
    const to = (range: string, version: string | null) =>
      diff({ version: range }, found(version)).changes.find(({ field }) => field === 'version')?.to;
    expect(to('20.*', null)).toBe('20.9');
    expect(to('20.1*', '19.1')).toBe('20.10');
    expect(to('>=5:1', '19.1')).toBe('5:20.1');
    expect(diff({ version: '21.*' }, found('19.1')).awaits?.[0]?.message).toBe(
      'no source of this machine offers foo 21.*, only 5:20.1, 20.9, 20.10, 19.1',
    );
    expect(diff({ version: '20.*' }, found('19.1'), 'drift').changes).toMatchObject([
      { field: 'version', from: '19.1' },
    ]);
  });

  test('keeps the installed version for `latest` if nothing newer is offered', () => {
    expect(diff({ version: 'latest' }, seen({ offer: offer('2.0') })).changes).toEqual([
      { field: 'version', from: '1.0', to: '2.0' },
    ]);
    expect(diff({ version: 'latest' }, seen({ version: '3.0', offer: offer('2.0') })).action).toBe('none');
    expect(diff({ version: 'latest' }, seen({ offer: offer(null, { trouble: 'no network' }) }))).toMatchObject({
      action: 'none',
      message: expect.stringContaining('no network'),
    });
  });

  test('refuses to change a held package, but accepts one that already matches its declaration', () => {
    const held = seen({ held: true, offer: offer('2.0') });
    expect(() => diff({ version: 'latest' }, held)).toThrow(/on hold/);
    expect(() => diff({ ensure: 'absent' }, held)).toThrow(/apt-mark unhold foo/);
    expect(diff({}, held).action).toBe('none');
    expect(diff({ version: '2.0' }, held, 'drift').changes).toHaveLength(1);
  });

  test('holds and releases a package as declared, also together with another change', () => {
    const held = seen({ held: true, offer: offer('2.0') });
    const change = (from: string, to: string) => ({ field: 'hold', from, to });
    expect(diff({ hold: true }, seen())).toMatchObject({ action: 'update', changes: [change('false', 'true')] });
    expect(diff({ hold: false }, held, 'drift').changes).toEqual([change('true', 'false')]);
    expect(diff({ hold: true }, held).action).toBe('none');
    expect(diff({ hold: false }, seen()).action).toBe('none');
    const version = { field: 'version', from: '1.0', to: '2.0' };
    expect(diff({ hold: true, version: 'latest' }, held).changes).toEqual([version]);
    expect(diff({ hold: false, version: '2.0' }, held).changes).toEqual([version, change('true', 'false')]);
    expect(diff({ hold: true }, { ...absent, offer: offer('2.0') })).toMatchObject({
      action: 'create',
      changes: [{ field: 'ensure' }, change('false', 'true')],
    });
    expect(diff({ hold: false, ensure: 'absent' }, held).action).toBe('remove');
  });

  test('releases a held package only to change it, and then holds it again', () => {
    const item = (body: Partial<ResourceBodies['package-apt']>, found: SeenPackage): PackageItem => ({
      kind: 'apply',
      resource: { type: 'package-apt', body: { name: 'foo', ...body } } as ResolvedResource,
      seen: found,
      difference: diff(body, found),
      before: null,
    });
    const held = seen({ held: true, offer: offer('2.0') });
    const plan = (one: PackageItem) => [mustBeReleased(one), mustBeHeld(one, false), mustBeHeld(one, true)];
    expect(plan(item({ hold: true, version: '2.0' }, held))).toEqual([true, true, true]);
    expect(plan(item({ hold: false, version: '2.0' }, held))).toEqual([true, false, true]);
    expect(plan(item({ hold: false, ensure: 'absent' }, held))).toEqual([true, false, true]);
    expect(plan(item({ hold: true }, seen()))).toEqual([false, true, false]);
    // A killed agent released the package: the next attempt finds the new version without the hold.
    expect(plan(item({ hold: true, version: '2.0' }, seen({ version: '2.0' })))).toEqual([false, true, false]);
    // The module does not manage the hold.
    const repaired = seen({ held: true, state: 'half-configured', whole: false });
    expect(plan(item({}, repaired))).toEqual([false, false, false]);
  });

  test('refuses to remove a package that the machine or the agent needs', () => {
    const needed = seen({ vital: 'the agent needs it to run (/usr/bin/node)' });
    expect(() => diff({ ensure: 'absent' }, needed)).toThrow(/^foo is not removed: the agent needs it to run/);
    expect(diff({ ensure: 'absent' }, needed, 'drift').action).toBe('remove');
    const before = { state: 'absent', version: null, auto: false, ground: null, trace: null } as const;
    expect(() => diffPackageRemoval('foo', before, needed)).toThrow(/^foo is not removed/);
  });

  test('repairs a package that dpkg did not finish configuring', () => {
    expect(diff({}, seen({ state: 'half-configured', whole: false })).changes).toEqual([
      { field: 'state', from: 'half-configured', to: 'installed' },
    ]);
  });
});

test('records the state again before each attempt to install a package, and keeps the record once the package is installed', async () => {
  const reference = { sha256: 'new', size: 1 };
  const machine = { database: async () => reference } as unknown as Machine;
  const known: PackageBefore = {
    state: 'absent',
    version: null,
    auto: false,
    ground: { sha256: 'old', size: 1 },
    trace: null,
  };
  const remember = (found: SeenPackage, before: PackageBefore | null) =>
    packageApt.remember({ body: {} } as ResolvedResource<'package-apt'>, found, nothing(), before, machine);
  expect(await remember(absent, null)).toEqual({ ...known, ground: reference });
  expect(await remember(absent, known)).toEqual({ ...known, ground: reference });
  expect(await remember(seen(), known)).toEqual(known);
  const holding = { body: { hold: true } } as ResolvedResource<'package-apt'>;
  const rememberHold = (found: SeenPackage, before: PackageBefore | null) =>
    packageApt.remember(holding, found, nothing(), before, machine);
  expect(await rememberHold(absent, null)).toEqual({ ...known, ground: reference, held: false });
  expect(await rememberHold(seen({ held: true }), null)).toMatchObject({ state: 'installed', held: true });
  expect(await rememberHold(seen({ held: true }), { ...known, held: false })).toMatchObject({ held: false });
  expect(await rememberHold(seen(), known)).toEqual({ ...known, held: false });
  const traced = { ...known, ground: null, trace: reference };
  expect(await remember(absent, traced)).toEqual(traced);
});

test('removes nothing if the file of another package cannot be downloaded', async () => {
  const machine = {
    database: async () => ({ interrupted: false, packages: new Map(), native: 'amd64' }),
    privateFiles: { read: () => null },
    async useDownload() {
      throw new HostFailure('the server answers 404');
    },
  } as unknown as Machine;
  const item = (body: object, difference: Difference, found: SeenPackage) =>
    ({
      ...{ kind: 'apply', before: null, difference, seen: found },
      resource: { type: 'package-apt', sensitive_fields: [], body },
    }) as unknown as PackageItem;
  const url = { url: 'https://host/b.deb', sha256: 'a'.repeat(64) };
  const create = diff({ name: 'b', ...url }, { ...absent, file: { version: null } });
  const outcomes = await packageApt.together?.(
    [
      item({ name: 'a', ensure: 'absent' }, diff({ name: 'a', ensure: 'absent' }, seen()), seen()),
      item({ name: 'b', ...url }, create, { ...absent, file: { version: null } }),
    ],
    machine,
  );
  expect(outcomes).toEqual([
    { failure: 'not removed, because the package file for b cannot be used; fix the file, and then apply again' },
    { failure: 'cannot download from https://host/b.deb: the server answers 404' },
  ]);
});

describe('removal of an apt package', () => {
  const before = (more: Partial<PackageBefore> = {}): PackageBefore => ({
    state: 'installed',
    version: '1.0',
    auto: false,
    ground: null,
    trace: null,
    ...more,
  });

  test('restores, on removal, the original version if a source still offers it, and the original automatic mark', () => {
    const now = seen({ version: '2.0', offer: offer('2.0', { offered: ['1.0'] }) });
    expect(diffPackageRemoval('foo', before({ auto: true }), now).changes).toEqual([
      { field: 'version', from: '2.0', to: '1.0' },
      { field: 'mark', from: 'manual', to: 'automatic' },
    ]);
    expect(diffPackageRemoval('foo', before(), seen({ version: '2.0', offer: offer('2.0') }))).toMatchObject({
      action: 'none',
      message: 'kept at 2.0: the sources no longer offer the original version 1.0',
    });
    expect(diffPackageRemoval('foo', before(), { ...absent, offer: offer('1.0', { offered: ['1.0'] }) })).toMatchObject(
      {
        action: 'create',
      },
    );
  });

  test('keeps a package removed if no source offers it, unless the lists could not be refreshed', () => {
    expect(diffPackageRemoval('foo', before(), { ...absent, offer: offer(null) })).toEqual(
      nothing('stays removed, because no source offers it'),
    );
    const unknown = { ...absent, offer: offer(null, { trouble: 'no network' }) };
    expect(diffPackageRemoval('foo', before(), unknown).action).toBe('create');
    expect(diffPackageRemoval('foo', before(), { ...absent, offer: offer('2.0') }).action).toBe('create');
  });

  test('restores, on removal, the hold that a module changed, and no other hold', () => {
    const held = seen({ held: true });
    expect(diffPackageRemoval('foo', before({ held: false }), held).changes).toEqual([
      { field: 'hold', from: 'true', to: 'false' },
    ]);
    expect(diffPackageRemoval('foo', before({ held: true }), seen()).changes).toEqual([
      { field: 'hold', from: 'false', to: 'true' },
    ]);
    expect(diffPackageRemoval('foo', before({ held: true }), held).action).toBe('none');
    expect(diffPackageRemoval('foo', before(), held).action).toBe('none');
    expect(diffPackageRemoval('foo', before({ state: 'absent', held: false }), held).action).toBe('remove');
    const newer = seen({ held: true, version: '2.0', offer: offer('2.0', { offered: ['1.0'] }) });
    expect(diffPackageRemoval('foo', before({ held: true }), newer).changes).toMatchObject([{ field: 'version' }]);
    expect(() => diffPackageRemoval('foo', before(), newer)).toThrow(/on hold/);
    expect(diffPackageRemoval('foo', before({ held: true }), absent).changes).toMatchObject([
      { field: 'ensure' },
      { field: 'hold', to: 'true' },
    ]);
  });

  test('removes a package that the agent installed, with its configuration', () => {
    const trace = { sha256: 'x', size: 1 };
    expect(diffPackageRemoval('foo', before({ state: 'absent' }), seen()).action).toBe('remove');
    expect(diffPackageRemoval('foo', before({ state: 'absent' }), absent).action).toBe('none');
    const left = seen({ state: 'config-files', version: null });
    expect(diffPackageRemoval('foo', before({ state: 'absent', trace }), left).action).toBe('remove');
    expect(diffPackageRemoval('foo', before({ state: 'config-files', trace }), left).action).toBe('none');
    expect(() => diffPackageRemoval('foo', before({ state: 'absent' }), seen({ held: true }))).toThrow(/on hold/);
  });

  test('changes the package to the version of its file, even if no source offers it', () => {
    const file = (version: string | null) => ({ file: { version } });
    expect(diff({}, { ...absent, ...file(null) })).toEqual({
      action: 'create',
      changes: [{ field: 'ensure', from: 'absent', to: 'present' }],
      diff: null,
    });
    expect(diff({}, { ...absent, ...file('1.0') }).changes).toContainEqual({ field: 'version', from: null, to: '1.0' });
    expect(diff({}, seen(file('1.0'))).action).toBe('none');
    expect(diff({}, seen(file(null)), 'drift').action).toBe('none');
    expect(diff({}, seen(file('2.0')))).toEqual({
      action: 'update',
      changes: [{ field: 'version', from: '1.0', to: '2.0' }],
      diff: null,
    });
    expect(diff({}, seen(file('0.9'))).message).toBe('0.9 is older than 1.0, so this is a downgrade');
    expect(() => diff({}, seen({ held: true, ...file('2.0') }))).toThrow(/on hold/);
    expect(diff({ hold: true }, seen({ held: true, ...file('2.0') })).action).toBe('update');
  });
});

test('accepts a .deb file only with the declared name and an architecture of the machine', () => {
  const misfit = (name: string, architecture: string) =>
    debMisfit(name, { name: 'foo', version: '1', architecture }, 'amd64');
  for (const [name, architecture] of [
    ['foo', 'amd64'],
    ['foo', 'all'],
    ['foo:amd64', 'amd64'],
    ['foo:amd64', 'all'],
    ['foo:i386', 'i386'],
  ] as const)
    expect(misfit(name, architecture), `${name} ${architecture}`).toBeNull();
  expect(misfit('bar', 'amd64')).toBe('the file has the package foo, not bar');
  expect(misfit('foo', 'arm64')).toBe(
    'the file is for the architecture arm64, not amd64; for another architecture, declare foo:arm64',
  );
  expect(misfit('foo:i386', 'amd64')).toMatch(/not i386/);
  expect(misfit('foo:i386', 'all')).toMatch(/not i386/);
});
