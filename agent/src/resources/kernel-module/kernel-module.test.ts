import { parseModule, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import { expect, test } from 'vitest';
import { parseBuiltIn, parseModules } from '../../host/kernel-modules.ts';
import type { Machine } from '../provider/provider.ts';
import { diffKernelModule, kernelModule, type SeenKernelModule } from './kernel-module.ts';

type Body = ResourceBodies['kernel-module'];
const declared = (fields: Partial<Body> = {}) =>
  ({
    type: 'kernel-module',
    identity: 'nf_conntrack',
    body: { name: 'nf-conntrack', ...fields },
    sensitive_fields: [],
  }) as unknown as ResolvedResource<'kernel-module'>;
const noFile: SeenKernelModule['atBoot'] = {
  found: { type: 'absent' },
  ownership: { wantedUid: 0, wantedGid: 0, ownerName: 'root', groupName: 'root' },
};
const seen = (fields: Partial<SeenKernelModule> = {}): SeenKernelModule => ({
  loaded: 'no',
  usedBy: '',
  atBoot: noFile,
  settings: noFile,
  missing: null,
  ...fields,
});
const diff = (body: Partial<Body>, now: Partial<SeenKernelModule> = {}) =>
  diffKernelModule(declared(body), seen(now), { purpose: 'apply' });

test('reads the loaded modules with their users, and the built-in ones', () => {
  const text = 'bridge 300 1 br_netfilter, Live 0x0\nbr_netfilter 200 0 - Live 0x0\nxfs 100 2 - Live 0x0 (E)\n';
  expect([...parseModules(text)]).toEqual([
    ['bridge', 'br_netfilter'],
    ['br_netfilter', ''],
    ['xfs', '2 users'],
  ]);
  expect([...parseModules('Module   Size  Used by\nbridge   300  1 br_netfilter\nloop  2  0\n')]).toEqual([
    ['bridge', 'br_netfilter'],
    ['loop', ''],
  ]);
  expect([...parseBuiltIn('kernel/fs/ext4/ext4.ko\nkernel/x/virtio-net.ko.xz\n')]).toEqual(['ext4', 'virtio_net']);
});

test('reports the running state separately from the files for the next boot', () => {
  expect(diff({ options: 'hashsize=1' })).toMatchObject({
    action: 'create',
    changes: [
      { field: 'loaded', from: 'no', to: 'yes' },
      { field: 'persisted', from: null, to: 'yes' },
      { field: 'options', from: null, to: 'hashsize=1' },
    ],
  });
  expect(diff({ ensure: 'absent', blacklist: true }, { loaded: 'yes' }).changes).toEqual([
    { field: 'loaded', from: 'yes', to: 'no' },
    { field: 'blacklist', from: null, to: 'yes' },
  ]);
});

test('keeps a built-in module, and reports that it cannot be unloaded if it is declared absent', () => {
  expect(diff({}, { loaded: 'built-in' }).changes.map(({ field }) => field)).toEqual(['persisted']);
  expect(diff({ ensure: 'absent' }, { loaded: 'built-in' })).toMatchObject({
    action: 'none',
    message: expect.stringContaining('part of the kernel'),
  });
});

test('reports that a loaded module keeps its earlier options', () => {
  expect(diff({ options: 'a=1' }, { loaded: 'yes' }).message).toContain('until it is loaded again');
});

test('waits for modprobe only if a module must be loaded or unloaded', () => {
  expect(diff({}, { missing: 'install kmod' }).awaits).toMatchObject([{ message: expect.stringContaining('kmod') }]);
  expect(diff({}, { missing: 'install kmod', loaded: 'yes' }).awaits).toBeUndefined();
});

test('refuses to unload a module that is in use, and keeps it on removal', async () => {
  const machine = { stale: () => {} } as unknown as Machine;
  const used = seen({ loaded: 'yes', usedBy: 'bridge' });
  const absent = declared({ ensure: 'absent' });
  const difference = diffKernelModule(absent, used, { purpose: 'apply' });
  await expect(kernelModule.apply(absent, used, difference, machine)).rejects.toThrow('while bridge use it');
  const before = { wasLoaded: false, atBoot: null, settings: null };
  expect(kernelModule.diffRemoval(declared(), before, used, {} as never, {} as never)).toMatchObject({
    action: 'none',
    message: expect.stringContaining('stays loaded'),
  });
});

test.each<[string, Partial<Body>, string]>([
  ['a name with a slash', { name: '../x' }, 'is not the name of a kernel module'],
  ['options with a line break', { options: 'a=1\ninstall x /bin/sh' }, 'must be one line'],
  ['options that join the next line', { options: 'a=1 \\' }, 'backslash'],
  ['a blacklisted module that is present', { blacklist: true }, '`blacklist` needs `ensure: absent`'],
  ['options of an absent module', { options: 'a=1', ensure: 'absent' }, 'has no options'],
])('refuses %s', (_what, body, message) => {
  expect(() => kernelModule.check(declared(body))).toThrow(message);
});

test.each<[string, Partial<Body>]>([
  ['a name with a slash', { name: '../x' }],
  ['a name that is an option', { name: '-r' }],
  ['options with a line break', { name: 'x', options: 'a=1\nb' }],
  ['options that are blank', { name: 'x', options: ' ' }],
])('refuses %s on upload', (_what, body) => {
  const source = {
    name: 'm',
    supports: [{ platform: 'linux' }],
    resources: [{ id: 'it', resource: { 'kernel-module': body } }],
  };
  expect(parseModule(JSON.stringify(source)).ok).toBe(false);
});
