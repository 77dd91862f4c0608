import type { ResolvedResource } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HostFailure } from '../../host/failure.ts';
import { compareRpmVersions, type PackageVersion, versionText } from '../../host/packages/rpm-version.ts';
import { diffPackage } from '../package-tool/diff.ts';
import { locksAfter, mustBeReleased } from '../package-tool/hold.ts';
import { diffPackageRemoval as diffRemoval } from '../package-tool/removal-diff.ts';
import { rpmMisfit } from '../package-tool/rpm-file.ts';
import type { PackageBefore, SeenPackage } from '../package-tool/seen.ts';
import { type Machine, nothing } from '../provider/provider.ts';
import { dnfTool, packageDnf } from './package-dnf.ts';

const version = (text: string): PackageVersion => {
  const [, epoch = '0', rest = '', release = ''] = /^(?:(\d+):)?([^-]+)-(.+)$/.exec(text) ?? [];
  return { epoch: Number(epoch), version: rest, release };
};
const resource = (body: object): ResolvedResource<'package-dnf'> =>
  ({
    type: 'package-dnf',
    identity: 'hello',
    body: { name: 'hello', ...body },
  }) as unknown as ResolvedResource<'package-dnf'>;
const seen = (
  installed: string | null,
  offered: string[] | null = null,
  rest: Partial<SeenPackage> = {},
): SeenPackage => ({
  installed: installed === null ? null : version(installed),
  locked: false,
  offer: offered === null ? null : { versions: offered.map(version), providers: [], trouble: null },
  ...rest,
});
const diff = (body: object, found: SeenPackage, purpose: 'apply' | 'plan' | 'drift' = 'apply') =>
  diffPackage(dnfTool, resource(body), found, { purpose });
const diffPackageRemoval = (name: string, before: PackageBefore, found: SeenPackage) =>
  diffRemoval(dnfTool, name, before, found);
const offered = ['1.0-1', '1.1-1', '1:0.9-1'];

describe('changes of an rpm package', () => {
  test('changes nothing if any version is installed and none is declared', () => {
    expect(diff({}, seen('1.0-1')).action).toBe('none');
    expect(diff({ version: '1.0' }, seen('1.0-7')).action).toBe('none');
    expect(diff({ version: 'latest' }, seen('2:1-1', offered)).action).toBe('none');
    expect(diff({ ensure: 'absent' }, seen(null)).action).toBe('none');
  });

  test('changes a package to the version of its file, even if no repository offers it', () => {
    const file = (version: string | null) => ({ file: { version } });
    expect(diff({}, seen(null, null, file(null)))).toEqual({
      action: 'create',
      changes: [{ field: 'ensure', from: 'absent', to: 'present' }],
      diff: null,
    });
    expect(diff({}, seen('1:1.0-1', null, file('1:1.0-1'))).action).toBe('none');
    expect(diff({}, seen('1.0-1', null, file(null)), 'drift').action).toBe('none');
    expect(diff({}, seen('1.0-1', null, file('1.1-1')))).toEqual({
      action: 'update',
      changes: [{ field: 'version', from: '1.0-1', to: '1.1-1' }],
      diff: null,
    });
    expect(diff({}, seen('1:0.9-1', null, file('1.1-1'))).message).toMatch(/this is a downgrade/);
    expect(() => diff({}, seen('1.0-1', null, { locked: true, ...file('1.1-1') }))).toThrow(/versionlock/);
  });

  test('accepts an .rpm file only with the declared name and an architecture of the machine', () => {
    const misfit = (name: string, architecture: string, inside = 'foo') =>
      rpmMisfit(name, { name: inside, version: '1-1', architecture }, 'x86_64');
    expect(misfit('foo', 'x86_64')).toBeNull();
    expect(misfit('foo', 'noarch')).toBeNull();
    expect(misfit('foo.i686', 'i686')).toBeNull();
    expect(misfit('foo.i686', 'noarch', 'foo.i686')).toBeNull();
    expect(misfit('bar', 'x86_64')).toBe('the file has the package foo, not bar');
    expect(misfit('foo', 'i686')).toBe(
      'the file is for the architecture i686, not x86_64; for another architecture, declare foo.i686',
    );
    expect(misfit('foo.i686', 'x86_64')).toMatch(/not i686/);
  });

  test('changes to the declared version, even across epochs', () => {
    const to = (body: object, installed: string | null) =>
      diff(body, seen(installed, offered)).changes.map(({ field, to }) => [field, to]);
    expect(to({}, null)).toEqual([['ensure', 'present']]);
    expect(to({ version: '1.1' }, null)).toEqual([
      ['ensure', 'present'],
      ['version', '1.1-1'],
    ]);
    expect(to({ version: 'latest' }, '1.1-1')).toEqual([['version', '1:0.9-1']]);
    expect(to({ version: '0.9' }, '1.1-1')).toEqual([['version', '1:0.9-1']]);
    expect(diff({ version: '1.0' }, seen('1:0.9-1', offered)).message).toBe(
      '1.0-1 is older than 1:0.9-1, so this is a downgrade',
    );
  });

  test('keeps an installed version that matches a pattern or a lower bound; otherwise chooses the newest', () => {
    for (const [range, installed] of [
      ['1.*', '1.0-7'],
      ['1.0-*', '1.0-7'],
      ['1:0.*', '1:0.9-1'],
      ['>=1.0', '1.0-1'],
      ['>= 1.0', '1:0.1-1'],
      ['>=1.0-3', '1.0-3'],
    ] as const) {
      expect(diff({ version: range }, seen(installed, offered)).action, range).toBe('none');
      expect(diff({ version: range }, seen(installed), 'drift').action, range).toBe('none');
    }
    const to = (range: string, installed: string | null) =>
      diff({ version: range }, seen(installed, offered)).changes.find(({ field }) => field === 'version')?.to;
    expect(to('1.*', null)).toBe('1.1-1');
    expect(to('1.*', '1:0.9-1')).toBe('1.1-1');
    expect(to('>=1.1', '1.0-1')).toBe('1:0.9-1');
    expect(diff({ version: '>=9:1' }, seen('1.0-1', offered)).awaits?.[0]?.message).toContain(
      'hello >=9:1, only 1.0-1',
    );
    const check = (range: string) => () => packageDnf.check(resource({ version: range }));
    expect(check('1.*')).not.toThrow();
    expect(check('>=1:1.2-3')).not.toThrow();
    for (const range of ['>=1.*', '> 1', '1.?', '>=']) expect(check(range), range).toThrow('is not a version');
  });

  test('waits for a package that no repository offers, and reports the reason', () => {
    const why = (body: object, found: SeenPackage) => diff(body, found).awaits?.[0]?.message;
    expect(why({}, seen(null, []))).toBe('no repository of this machine offers a package hello');
    expect(why({ version: '3' }, seen(null, offered))).toContain('hello 3, only 1.0-1, 1.1-1, 1:0.9-1');
    const offer = { versions: [], providers: ['web'], trouble: 'no network' };
    expect(why({}, seen(null, null, { offer }))).toContain('declare a package that provides it: web');
    expect(why({}, seen(null, null, { offer: { ...offer, providers: [] } }))).toContain('no network');
  });

  test('names the declared repository that does not offer a package', () => {
    const why = (body: object, found: SeenPackage) => diff({ from: 'epel', ...body }, found).awaits?.[0]?.message;
    expect(why({}, seen(null, []))).toBe('the repository epel does not offer a package hello');
    expect(why({ version: '3' }, seen(null, offered))).toContain('the repository epel does not offer hello 3, only');
    expect(() => packageDnf.check(resource({ from: '--all' }))).toThrow('is not the id of one repository');
    expect(() => packageDnf.check(resource({ from: 'epel*' }))).toThrow('is not the id of one repository');
    expect(() => packageDnf.check(resource({ from: 'copr:copr.example.org:a:b' }))).not.toThrow();
  });

  test('refuses to change a locked package, but still reports its drift', () => {
    const locked = seen('1.0-1', offered, { locked: true });
    expect(() => diff({ version: '1.1' }, locked)).toThrow('dnf versionlock delete hello');
    expect(() => diff({ ensure: 'absent' }, locked)).toThrow('versionlock');
    expect(diff({ version: '1.1' }, locked, 'drift').changes).toHaveLength(1);
    expect(diff({}, locked).action).toBe('none');
  });

  test('locks and releases a package as declared, also together with another change', () => {
    const locks = [{ at: 3, line: 'hello-0:1.0-1.*' }];
    const held = seen('1.0-1', offered, { locked: true, locks });
    const change = (from: string, to: string) => ({ field: 'hold', from, to });
    expect(diff({ hold: true }, seen('1.0-1'))).toEqual({
      ...{ action: 'update', changes: [change('false', 'true')], diff: null },
    });
    expect(diff({ hold: false }, held, 'drift').changes).toEqual([change('true', 'false')]);
    expect(diff({ hold: true }, held).action).toBe('none');
    expect(diff({ hold: false }, seen('1.0-1')).action).toBe('none');
    expect(diff({ hold: true, version: '1.1' }, held).changes).toMatchObject([{ field: 'version', to: '1.1-1' }]);
    expect(diff({ hold: true }, seen(null, offered))).toMatchObject({
      action: 'create',
      changes: [{ field: 'ensure' }, change('false', 'true')],
    });
    expect(diff({ hold: false, ensure: 'absent' }, held).action).toBe('remove');
    // A pattern may lock other packages as well.
    const byPattern = seen('1.0-1', offered, { locked: true });
    expect(diff({ hold: true }, byPattern).action).toBe('none');
    for (const body of [{ hold: false }, { hold: true, version: '1.1' }, { hold: true, ensure: 'absent' }])
      expect(() => diff(body, byPattern)).toThrow(/a pattern in .* locks it/);
    expect(diff({ hold: true }, seen('1.0-1', null, { lacksPlugin: true })).awaits).toEqual([
      { kind: 'programs', message: expect.stringContaining('install python3-dnf-plugin-versionlock') },
    ]);
  });

  test('releases a locked package only to change it, and then locks it at its new version', () => {
    const locks = [{ at: 3, line: 'hello-0:1.0-1.*' }];
    const held = seen('1.0-1', offered, { locked: true, locks });
    const plan = (body: object, found: SeenPackage, installed: string | null = '1.1-1') => {
      const item = {
        ...{ kind: 'apply', before: null, difference: diff(body, found), seen: found },
        resource: resource(body),
      } as never;
      const now = installed === null ? null : version(installed);
      return [
        mustBeReleased(item),
        locksAfter(dnfTool, item, 'hello', now, false),
        locksAfter(dnfTool, item, 'hello', now, true),
      ];
    };
    const moved = [{ at: 3, line: 'hello-0:1.1-1.*' }];
    expect(plan({ hold: true, version: '1.1' }, held)).toEqual([true, moved, locks]);
    expect(plan({ hold: false, version: '1.1' }, held)).toEqual([true, null, locks]);
    expect(plan({ hold: true, ensure: 'absent' }, held, null)).toEqual([true, null, locks]);
    expect(plan({ hold: true }, held)).toEqual([false, null, null]);
    expect(plan({ hold: true }, seen(null, offered))).toEqual([false, [{ at: 0, line: 'hello-0:1.1-1.*' }], null]);
    expect(plan({}, seen('1.1-1'))).toEqual([false, null, null]);
  });

  test('changes nothing in a second apply', () => {
    const some = fc.constantFrom(...offered, '0.1-1', '3:0-1');
    fc.assert(
      fc.property(
        fc.option(some),
        fc.uniqueArray(some),
        fc.constantFrom(undefined, 'latest', '1.0', '1.1-1', '0.9', '1.*', '>=1.1', '*'),
        (installed, list, range) => {
          const sorted = list.map(version).sort(compareRpmVersions).map(versionText);
          const found = diff({ version: range }, seen(installed, sorted));
          if (found.action === 'none' || found.awaits !== undefined) return;
          const to = found.changes.find(({ field }) => field === 'version')?.to ?? sorted.at(-1);
          expect(sorted).toContain(to);
          expect(diff({ version: range }, seen(String(to), sorted)).action).toBe('none');
        },
      ),
    );
  });
});

describe('removal of an rpm package', () => {
  const before = (old: string | null) => ({ version: old, ground: null, brought: [] });

  test('keeps a package removed if no repository offers it', () => {
    const before = { version: '1.0-1', ground: null, brought: [] };
    expect(diffPackageRemoval('hello', before, seen(null, []))).toEqual(
      nothing('stays removed, because no repository offers it'),
    );
    expect(diffPackageRemoval('hello', before, seen(null, ['1.1-1'])).action).toBe('create');
  });

  test('does not give up the original version while a repository cannot be read', () => {
    const unread = (installed: string | null, offered: string[]) =>
      seen(installed, null, { offer: { versions: offered.map(version), providers: [], trouble: 'no network' } });
    for (const [installed, others] of [
      [null, []],
      [null, ['1.1-1']],
      ['1.1-1', []],
      ['1.1-1', ['1.1-1']],
    ] as const)
      expect(() => diffPackageRemoval('hello', before('1.0-1'), unread(installed, [...others]))).toThrow(
        'hello does not get its original version 1.0-1 back, because the metadata of the repositories could not be refreshed: no network',
      );
    expect(diffPackageRemoval('hello', before('1.0-1'), unread('1.1-1', ['1.0-1'])).changes).toEqual([
      { field: 'version', from: '1.1-1', to: '1.0-1' },
    ]);
    expect(diffPackageRemoval('hello', before('1.0-1'), unread('1.0-1', [])).action).toBe('none');
  });

  test('restores the locks of a package that someone removed', () => {
    const held = (installed: string | null, version: string | null) => {
      const locks = [{ at: 0, line: 'hello-0:1.0-1.*' }];
      const found = seen(installed, [], { locked: true, locks });
      return diffPackageRemoval('hello', { ...before(version), locks: [] }, found);
    };
    const released = { action: 'update', changes: [{ field: 'hold', from: 'true', to: 'false' }] };
    expect(held(null, null)).toMatchObject(released);
    expect(held(null, '0.9-1')).toMatchObject({ ...released, message: expect.stringContaining('stays removed') });
    expect(held('1.0-1', null)).toMatchObject({ action: 'remove' });
  });

  test('removes nothing if the file of another package cannot be downloaded', async () => {
    const machine = {
      database: async () => ({ packages: new Map(), lockList: '', canLock: true, native: 'x86_64' }),
      privateFiles: { read: () => null },
      async useDownload() {
        throw new HostFailure('the server answers 404');
      },
    } as unknown as Machine;
    const item = (body: object, found: SeenPackage) =>
      ({
        ...{ kind: 'apply', before: null, difference: diff(body, found), seen: found },
        resource: { ...resource(body), sensitive_fields: [] },
      }) as never;
    const b = { name: 'b', url: 'https://host/b.rpm', sha256: 'a'.repeat(64) };
    const outcomes = await packageDnf.together?.(
      [item({ name: 'a', ensure: 'absent' }, seen('1.0-1')), item(b, seen(null, null, { file: { version: null } }))],
      machine,
    );
    expect(outcomes).toEqual([
      { failure: 'not removed, because the package file for b cannot be used; fix the file, and then apply again' },
      { failure: 'cannot download from https://host/b.rpm: the server answers 404' },
    ]);
  });

  test('restores the locks that a module changed, and no others', () => {
    const locks = [{ at: 3, line: 'hello-0:1.0-1.*' }];
    const was = (old: string | null, lines = locks) => ({ ...before(old), locks: lines });
    expect(diffPackageRemoval('hello', was('1.0-1'), seen('1.0-1')).changes).toEqual([
      { field: 'hold', from: 'false', to: 'true' },
    ]);
    const held = seen('1.0-1', null, { locked: true, locks });
    expect(diffPackageRemoval('hello', was('1.0-1'), held).action).toBe('none');
    expect(diffPackageRemoval('hello', was('1.0-1', []), held).changes).toEqual([
      { field: 'hold', from: 'true', to: 'false' },
    ]);
    expect(diffPackageRemoval('hello', was(null, []), held).action).toBe('remove');
    expect(
      diffPackageRemoval('hello', was('1.1-1', []), seen('1.0-1', ['1.1-1'], { locked: true, locks })),
    ).toMatchObject({
      changes: [{ field: 'version', to: '1.1-1' }, { field: 'hold' }],
    });
  });

  test('removes an installed package, or restores its old version if still offered', () => {
    expect(diffPackageRemoval('hello', before(null), seen('1.0-1'))).toMatchObject({ action: 'remove' });
    expect(diffPackageRemoval('hello', before(null), seen(null)).action).toBe('none');
    expect(diffPackageRemoval('hello', before('1.0-1'), seen('1.1-1', ['1.0-1']))).toMatchObject({
      action: 'update',
      changes: [{ from: '1.1-1', to: '1.0-1' }],
      message: expect.stringContaining('a downgrade'),
    });
    expect(diffPackageRemoval('hello', before('1.0-1'), seen('1.1-1', []))).toMatchObject({
      action: 'none',
      message: expect.stringContaining('kept at 1.1-1'),
    });
    expect(diffPackageRemoval('hello', before('1.0-1'), seen(null, ['1.1-1'])).action).toBe('create');
    expect(() => diffPackageRemoval('hello', before(null), seen('1.0-1', null, { locked: true }))).toThrow(
      'versionlock',
    );
  });
});

describe('a body', () => {
  test.each(['@core', 'hel*', '/usr/bin/x', 'foo>=1', 'https://x/y.rpm', '-y', 'a?'])(
    'refuses the package name %s',
    (name) => {
      expect(() => packageDnf.check(resource({ name }))).toThrow();
    },
  );
  test.each(['1.0 || 2', '-1', '1:', '1-2-3', '*'])('refuses the version %s', (range) => {
    expect(() => packageDnf.check(resource({ version: range }))).toThrow();
  });
  test('accepts every valid package name and version', () => {
    for (const name of ['gcc-c++', 'python3.11', 'glibc.i686', 'NetworkManager']) packageDnf.check(resource({ name }));
    for (const range of ['latest', '1.0', '1:0.9~rc1^git-1.fc40']) packageDnf.check(resource({ version: range }));
  });
});
