import { parseModule, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { parseMounts } from '../../host/mounts.ts';
import { joinText, splitText } from '../text-edit/lines.ts';
import { diffMount, diffMountRemoval } from './diff.ts';
import { declaredEntries, entriesAt, parseEntry } from './fstab.ts';
import { mountUnix } from './mount-unix.ts';
import { differingOptions, remountOptions } from './options.ts';
import type { SeenMount } from './seen.ts';

type Body = ResourceBodies['mount-unix'];
const body: Body = { path: '/data', device: '/dev/sdb1', type: 'ext4' };
const declared = (fields: Partial<Body> = {}) =>
  ({
    ...{ type: 'mount-unix', identity: '/data', sensitive_fields: [] },
    body: { ...body, ...fields },
  }) as unknown as ResolvedResource<'mount-unix'>;
const entry = { device: '/dev/sdb1', path: '/data', type: 'ext4', options: 'defaults', dump: '0', pass: '2' };
const edited = (text: string, wanted: typeof entry | null) => {
  const lines = splitText(text);
  return joinText(declaredEntries(entriesAt('/data', lines), wanted, lines));
};
const live = { source: '/dev/sdb1', type: 'ext4', options: 'rw,relatime', ownOptions: 'rw,relatime', isDeclared: true };
const seen = (fields: Partial<SeenMount> = {}): SeenMount => ({
  ...{ type: 'file', kind: null, ownership: { uid: 0, gid: 0, mode: 0o644 } },
  ...{ lines: [], options: 'defaults', hasDirectory: true, live: null },
  ...fields,
});
const diff = (fields: Partial<Body>, now: Partial<SeenMount>) =>
  diffMount(declared(fields), seen(now), { purpose: 'apply', willBeThere: () => false });

test('changes only the fields of a line that differ, and keeps spaces, comments, and other lines', () => {
  const text = '# disks\n\tUUID=1  /data\text4   noatime\t0  1\n\nnone /data2 tmpfs\n';
  expect(edited(text, entry)).toBe('# disks\n\t/dev/sdb1  /data\text4   defaults\t0  2\n\nnone /data2 tmpfs\n');
  expect(edited(text, { ...entry, device: 'UUID=1', options: 'noatime', pass: '1' })).toBe(text);
});

test('adds missing fields at the end of a line, adds a missing line, and removes duplicate lines of a mount point', () => {
  expect(edited('/dev/sdb1 /data/ ext4\n', entry)).toBe('/dev/sdb1 /data/ ext4 defaults 0 2\n');
  expect(edited('a /b ext4', entry)).toBe('a /b ext4\n/dev/sdb1 /data ext4 defaults 0 2');
  expect(edited('/dev/sdb1 /data ext4 defaults 0 2\n# x\nother /data ext4\n', entry)).toBe(
    '/dev/sdb1 /data ext4 defaults 0 2\n# x\n',
  );
  expect(edited('a /data ext4\n# x\n', null)).toBe('# x\n');
});

test('encodes and decodes spaces in words', () => {
  const lines = declaredEntries([], { ...entry, path: '/my data', device: '/srv/a b' }, []);
  expect(joinText(lines)).toBe('/srv/a\\040b /my\\040data ext4 defaults 0 2\n');
  expect(parseEntry(lines[0]?.text ?? '')).toMatchObject({ device: '/srv/a b', path: '/my data' });
  expect(entriesAt('/my data', lines)).toEqual([0]);
});

test('compares the flags of a mounted file system, and the limits of tmpfs', () => {
  const at = (options: string, type = 'ext4') => ({ type, options, ownOptions: 'rw,relatime' });
  expect(differingOptions('defaults,data=ordered', at('rw,relatime,stripe=4'))).toBeNull();
  expect(differingOptions('ro,noexec', at('rw,noexec'))).toEqual({ from: 'rw', to: 'ro' });
  expect(differingOptions('users,exec', at('rw,nosuid,nodev'))).toBeNull();
  expect(differingOptions('noatime', at('rw,relatime'))).toEqual({ from: 'relatime', to: 'noatime' });
  expect(differingOptions('bind,ro', { ...at('ro'), ownOptions: 'rw' })).toEqual({ from: 'rw', to: 'ro' });
  expect(differingOptions('size=1m', at('rw,size=1024k', 'tmpfs'))).toBeNull();
  expect(differingOptions('size=100', at('rw,size=4k', 'tmpfs'))).toBeNull();
  expect(differingOptions('size=50%', at('rw,size=4k', 'tmpfs'))).toBeNull();
  expect(differingOptions('size=2m', at('rw,size=1024k', 'tmpfs'))).toEqual({ from: 'size=1024k', to: 'size=2m' });
  expect(remountOptions('noexec,size=1m')).toBe('rw,noexec,suid,dev,relatime');
});

test('reports the line separately from the mounted file system', () => {
  expect(diff({}, {}).changes.map(({ field }) => field)).toEqual([
    ...['ensure', 'device', 'type', 'options', 'dump', 'pass', 'mounted'],
  ]);
  const other = { ...live, source: '/dev/sdc1', isDeclared: false };
  expect(diff({}, { live: other }).changes.at(-1)).toEqual({
    field: 'live_device',
    from: '/dev/sdc1 (ext4)',
    to: '/dev/sdb1',
  });
  expect(diff({ mounted: false }, { live }).changes.at(-1)).toEqual({ field: 'mounted', from: 'yes', to: 'no' });
});

test('waits for the mount point if the file system must be mounted', () => {
  expect(diff({}, { hasDirectory: false }).awaits).toMatchObject([{ message: expect.stringContaining('/data') }]);
  expect(diff({ mounted: false }, { hasDirectory: false }).awaits).toBeUndefined();
});

test('keeps file systems that others mounted at the mount point when it removes the resource', () => {
  const before = { lines: { was: 'absent' as const, made: false }, live: { was: 'unmounted' as const } };
  const removal = (now: SeenMount['live']) => diffMountRemoval(declared(), before, seen({ live: now })).action;
  expect(removal(live)).toBe('remove');
  expect(removal({ ...live, isDeclared: false })).toBe('none');
});

test('reads the last of several file systems at a mount point', () => {
  const mounted = (source: string) => ({ target: '/data', source, fstype: 'ext4', options: 'rw', 'vfs-options': 'rw' });
  const mounts = parseMounts(JSON.stringify({ filesystems: [mounted('/dev/a'), mounted('/dev/b')] }));
  expect(mounts.get('/data')?.source).toBe('/dev/b');
});

test.each<[string, Partial<Body>]>([
  ['a relative path', { path: 'data' }],
  ['the root', { path: '/' }],
  ['a device that is an option', { device: '-a' }],
  ['options with a space', { options: 'ro, noexec' }],
  ['options with a line break', { options: 'ro\nx' }],
  ['swap', { type: 'swap' }],
  ['a missing type', { type: null as never }],
])('refuses %s on upload', (_what, fields) => {
  const resource = { 'mount-unix': { ...body, ...fields } };
  const source = { name: 'm', supports: [{ platform: 'linux' }], resources: [{ id: 'it', resource }] };
  expect(parseModule(JSON.stringify(source)).ok).toBe(false);
});

test('repeats a remount if the agent was killed, because the mount options do not show whether the remount was done', () => {
  const isDone = (fields: Partial<Body>, ...changed: string[]) =>
    mountUnix.wasApplied?.(declared(fields), {}, seen({ live }), {
      ...{ action: 'update', diff: null },
      changes: changed.map((field) => ({ field, from: null, to: null })),
    });
  expect(isDone({}, 'options')).toBe(false);
  expect(isDone({}, 'options', 'mounted')).toBe(true);
  expect(isDone({}, 'pass', 'live_options')).toBe(true);
  expect(isDone({ mounted: false }, 'options')).toBe(true);
});
