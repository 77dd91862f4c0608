import { expect, test } from 'vitest';
import {
  checkCapabilities,
  diffCapabilities,
  diffCapabilitiesRemoval,
  gainsCapabilities,
  isProtected,
  rememberCapabilities,
  type SeenCapabilities,
} from './capabilities.ts';

const changes = (found: string, declared: string[] | null) => diffCapabilities('/srv/f', { found }, declared, false);
const change = (from: string | null, to: string | null) => [{ field: 'capabilities', from, to }];
const lacks: SeenCapabilities = { found: '', lacksPrograms: true };

test('refuses entries that it does not understand', () => {
  expect(() => checkCapabilities(['cap_net_raw=ep', 'cap_kill=eip', 'cap_chown=i'])).not.toThrow();
  for (const entry of ['cap_net_raw+ep', 'cap_net_raw=e', '=ep', '-r', 'cap_kill=ep cap_chown=ep', 'cap_kill=ep\n'])
    expect(() => checkCapabilities([entry]), entry).toThrow('does not understand');
});

test('compares all capabilities, in any spelling', () => {
  expect(changes('cap_net_admin,cap_net_raw=ep', ['cap_net_admin=ep', 'cap_net_raw=ep']).changes).toEqual([]);
  expect(changes('cap_net_raw=ep', []).changes).toEqual(change('cap_net_raw=ep', null));
  expect(changes('=ep', ['cap_net_raw=ep']).changes).toEqual(change('=ep', 'cap_net_raw=ep'));
  expect(changes('cap_net_raw=ep [rootid=1000]', ['cap_net_raw=ep']).changes).toEqual(
    change('[rootid=1000], cap_net_raw=ep', 'cap_net_raw=ep'),
  );
  expect(changes('', null).changes).toEqual([]);
  expect(diffCapabilities('/srv/f', undefined, ['cap_net_raw=ep'], false).changes).toEqual([]);
});

test('waits for the missing programs, which a drift check reports', () => {
  expect(diffCapabilities('/srv/f', lacks, ['cap_kill=ep'], false)).toEqual({
    changes: change(null, 'cap_kill=ep'),
    awaits: [{ kind: 'programs', message: expect.stringContaining('install the package libcap2-bin') }],
  });
  expect(() => diffCapabilities('/srv/f', lacks, ['cap_kill=ep'], true)).toThrow('install the package libcap2-bin');
});

test('knows which files gain capabilities, and which only root can write', () => {
  expect(gainsCapabilities({ found: 'cap_kill=ep' }, ['cap_kill=ep'])).toBe(false);
  expect(gainsCapabilities({ found: 'cap_kill=p' }, ['cap_kill=ep'])).toBe(true);
  expect(gainsCapabilities({ found: 'cap_kill=ep' }, [])).toBe(false);
  expect(gainsCapabilities(undefined, ['cap_kill=ep'])).toBe(false);
  const uid = process.geteuid?.() ?? 0;
  expect(isProtected({ uid, gid: 0, mode: 0o755 })).toBe(true);
  expect(isProtected({ uid: uid + 1, gid: 0, mode: 0o755 })).toBe(false);
  expect(isProtected({ uid, gid: 0, mode: 0o775 })).toBe(false);
  expect(isProtected({ uid, gid: 0, mode: 0o757 })).toBe(false);
});

test('records the first capabilities, and restores them', () => {
  expect(rememberCapabilities({ capabilities: 'cap_kill=ep' }, { found: '' })).toEqual({ capabilities: 'cap_kill=ep' });
  expect(rememberCapabilities({}, { found: 'cap_kill=ep' })).toEqual({ capabilities: 'cap_kill=ep' });
  expect(rememberCapabilities({}, undefined)).toEqual({});
  expect(diffCapabilitiesRemoval('/srv/f', 'cap_kill+p', { found: '' })).toEqual(change(null, 'cap_kill=p'));
  expect(diffCapabilitiesRemoval('/srv/f', undefined, undefined)).toEqual([]);
  expect(() => diffCapabilitiesRemoval('/srv/f', 'cap_kill=p', lacks)).toThrow('install the package libcap2-bin');
  expect(diffCapabilitiesRemoval('/srv/f', '', lacks)).toEqual([]);
});
