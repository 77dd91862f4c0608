import { expect, test } from 'vitest';
import { parseCapabilities } from '../../host/files/capabilities.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import {
  changeWithCapabilities,
  checkCapabilities,
  diffCapabilities,
  diffCapabilitiesRemoval,
  expectOnlyRootWrites,
  recordedCapabilities,
  restoredCapabilities,
  type SeenCapabilities,
} from './capabilities.ts';

const own = process.geteuid?.() ?? 0;
const roots = { uid: own, gid: 0, mode: 0o755 };
const others = { uid: own + 1000, gid: 0, mode: 0o755 };
const shared = { uid: own, gid: 0, mode: 0o775 };
const lacks: SeenCapabilities = { text: '', lacksPrograms: true };
const changes = (text: string, declared: string[] | null) =>
  diffCapabilities('/srv/f', { text }, declared, false).changes;
const change = (from: string | null, to: string | null) => [{ field: 'capabilities', from, to }];

test('refuses capabilities that it does not understand', () => {
  expect(() => checkCapabilities(['cap_net_raw', 'cap_checkpoint_restore'])).not.toThrow();
  for (const name of ['net_raw', 'cap_net_raw+ep', '-r', 'all', 'cap_net_raw /etc/shadow'])
    expect(() => checkCapabilities([name]), name).toThrow('does not understand');
});

test.each([
  ['cap_chown,cap_net_raw=ep', ['cap_net_raw', 'cap_chown'], []],
  ['cap_net_raw+ep', ['cap_net_raw'], []],
  ['', [], []],
  ['cap_net_raw=ep', null, []],
  ['', ['cap_net_raw', 'cap_chown'], change(null, 'cap_chown, cap_net_raw')],
  ['cap_chown=ep', [], change('cap_chown', null)],
  ['cap_net_raw=eip', ['cap_net_raw'], change('cap_net_raw=eip', 'cap_net_raw')],
  ['cap_net_raw=p', ['cap_net_raw'], change('cap_net_raw=p', 'cap_net_raw')],
  ['=ep', ['cap_net_raw'], change('=ep', 'cap_net_raw')],
])('compares the capabilities %j with %j', (text, declared, expected) => {
  expect(changes(text, declared)).toEqual(expected);
});

test('waits for the missing programs, which a drift check reports, unless no capabilities are declared', () => {
  expect(diffCapabilities('/srv/f', lacks, ['cap_net_raw'], false)).toEqual({
    changes: change(null, 'cap_net_raw'),
    awaits: [{ kind: 'programs', message: expect.stringContaining('needs the programs getcap and setcap') }],
  });
  expect(() => diffCapabilities('/srv/f', lacks, ['cap_net_raw'], true)).toThrow('getcap and setcap');
  expect(diffCapabilities('/srv/f', lacks, [], true)).toEqual({ changes: [], awaits: [] });
  expect(() => diffCapabilitiesRemoval('/srv/f', 'cap_net_raw=ep', lacks)).toThrow('getcap and setcap');
  expect(diffCapabilitiesRemoval('/srv/f', '', lacks)).toEqual([]);
});

test('fails on a file system without capabilities, unless none are declared', () => {
  const seen: SeenCapabilities = { text: '', isUnsupported: true };
  for (const isDrift of [false, true])
    expect(() => diffCapabilities('/srv/f', seen, ['cap_net_raw'], isDrift)).toThrow('its file system has none');
  expect(diffCapabilities('/srv/f', seen, [], false)).toEqual({ changes: [], awaits: [] });
  expect(() => diffCapabilitiesRemoval('/srv/f', 'cap_net_raw=ep', seen)).toThrow('its file system has none');
  expect(diffCapabilitiesRemoval('/srv/f', '', seen)).toEqual([]);
});

test.each([
  ['', '', 0, ''],
  ['/srv/f cap_net_raw=ep\n', '', 0, 'cap_net_raw=ep'],
  ['/srv/f = cap_net_raw+ep\n', '', 0, 'cap_net_raw+ep'],
  ['/srv/f cap_net_raw=ep [rootid=1000]\n', '', 0, 'cap_net_raw=ep [rootid=1000]'],
  ['', "Failed to get capabilities of file '/srv/f' (Operation not supported)\n", 0, null],
  ['', "Failed to get capabilities of file '/srv/f' (Operation not supported)\n", 1, null],
])('reads the output %j and %j of getcap', (stdout, stderr, exitCode, expected) => {
  const result = { stdout, stderr, exitCode, signal: null, truncated: false, timedOut: false };
  expect(parseCapabilities('/srv/f', '/srv/f', result)).toBe(expected);
});

test('does not take capabilities of a user namespace for others, and does not record them', () => {
  const seen = { text: 'cap_net_raw=ep [rootid=1000]' };
  expect(changes(seen.text, ['cap_net_raw'])).toEqual(change(seen.text, 'cap_net_raw'));
  expect(() => recordedCapabilities('/srv/f', undefined, seen)).toThrow('setcap -r /srv/f');
  expect(recordedCapabilities('/srv/f', 'cap_chown=ep', seen)).toBe('cap_chown=ep');
  expect(recordedCapabilities('/srv/f', undefined, { text: '' })).toBe('');
  expect(recordedCapabilities('/srv/f', undefined, lacks)).toBeUndefined();
});

test('gives no capabilities to a program that another user has written or can write', () => {
  expect(() => expectOnlyRootWrites('/srv/f', null, roots)).not.toThrow();
  expect(() => expectOnlyRootWrites('/srv/f', roots, roots)).not.toThrow();
  for (const target of [others, shared])
    expect(() => expectOnlyRootWrites('/srv/f', null, target)).toThrow('users other than root can write /srv/f');
  for (const kept of [others, shared])
    expect(() => expectOnlyRootWrites('/srv/f', kept, roots)).toThrow('users other than root may have written /srv/f');
});

test('restores capabilities only to a program that only root can write, and that only root has written', () => {
  const text = 'cap_net_raw=ep';
  expect(restoredCapabilities(text, roots, roots)).toEqual({ text, isLeftOut: false });
  expect(restoredCapabilities(text, null, roots)).toEqual({ text, isLeftOut: false });
  expect(restoredCapabilities('', others, others)).toEqual({ text: '', isLeftOut: false });
  for (const [kept, target] of [[others, roots] as const, [shared, roots] as const, [null, others] as const])
    expect(restoredCapabilities(text, kept, target)).toEqual({ text: '', isLeftOut: true });
});

test('needs no file and no programs if there are no capabilities to set', async () => {
  const walk = new PathWalk();
  for (const [seen, wanted] of [
    [undefined, 'cap_net_raw=ep'] as const,
    [{ text: '' }, null] as const,
    [lacks, ''] as const,
    [{ text: '', isUnsupported: true }, ''] as const,
  ])
    expect(await changeWithCapabilities('/srv/no/f', seen, wanted, { walk }, async () => 'done')).toBe('done');
});
