import { expect, test } from 'vitest';
import type { Accounts } from '../../host/accounts/accounts.ts';
import { type Acl, parseAcl } from '../../host/files/acl-entries.ts';
import {
  checkAcl,
  diffAcl,
  diffAclRemoval,
  losesWriter,
  restoredAcl,
  seenAcl,
  wantedEntries,
  widened,
  withinMask,
  withoutMask,
} from './acl.ts';

const users: Record<string, number> = { ann: 1000, ben: 1001 };
const accounts: Accounts = {
  uid: (name) => users[name] ?? (/^\d+$/.test(name) ? Number(name) : null),
  gid: (name) => (name === 'ops' ? 2000 : null),
  userName: (uid) => Object.keys(users).find((name) => users[name] === uid) ?? String(uid),
  groupName: (gid) => (gid === 2000 ? 'ops' : String(gid)),
};
const seen = (acl: string[], found: Acl | null = null) => {
  const { lacksPrograms: _, ...rest } = seenAcl(acl, found, accounts);
  return rest;
};

test('parses the output of getfacl', () => {
  const text = 'user::rw-\nuser:1000:rw-\ngroup::r--\nmask::rw-\nother::---\ndefault:user::rwx\n\n';
  expect(parseAcl(text)).toEqual({ group: 4, entries: ['default:user::rwx', 'mask::rw-', 'user:1000:rw-'] });
  expect(() => parseAcl('user:ann:rw-\n')).toThrow('not an entry');
  expect(() => parseAcl('hello\n')).toThrow('not an entry');
});

test('refuses entries in an unknown format', () => {
  for (const entry of [
    'user::rw-',
    'u:ann:rw-',
    'user:ann:rw',
    'user:a,b:rw-',
    'mask::rwx',
    'other:ann:r--',
    'user:-x:r--',
  ])
    expect(() => checkAcl([entry], 'directory'), entry).toThrow('does not understand');
  expect(() => checkAcl(['default:user:ann:rw-'], 'file')).toThrow('does not understand');
  expect(() => checkAcl(['default:other::---', 'user:1000:rw-', 'group:o.p-s@x$:--x'], 'directory')).not.toThrow();
});

test('computes the mask from all entries, and default entries from the permissions', () => {
  expect(wantedEntries(seen(['user:ann:rw-', 'group:ops:--x']), 0o640)).toEqual([
    'group:2000:--x',
    'mask::rwx',
    'user:1000:rw-',
  ]);
  expect(wantedEntries(seen(['default:other::---']), 0o755)).toEqual([
    ...['default:group::r-x', 'default:other::---', 'default:user::rwx'],
  ]);
  expect(wantedEntries(seen(['default:user:ann:rwx'], { group: 5, entries: ['default:group::---'] }), 0o755)).toEqual([
    ...['default:group::---', 'default:mask::rwx', 'default:other::r-x', 'default:user:1000:rwx', 'default:user::rwx'],
  ]);
  expect(wantedEntries(seen([]), 0o755)).toEqual([]);
});

test('shows the owning group in place of the mask', () => {
  const found = { type: 'file', size: 0, content: null, uid: 0, gid: 0, mode: 0o660, stamp: '' } as const;
  const entries = ['mask::rw-', 'user:1000:rw-'];
  expect(withoutMask(found, seen([], { group: 4, entries })).mode).toBe(0o640);
  expect(withoutMask(found, seen([], { group: 4, entries: [] })).mode).toBe(0o660);
});

test('reports different entries, and accounts that do not exist', () => {
  const found = { group: 4, entries: ['mask::r--', 'user:1000:rw-'] };
  expect(diffAcl('/f', seen(['user:ann:rw-'], found), 0o640, true).changes).toEqual([
    { field: 'acl', from: 'mask::r--, user:ann:rw-', to: 'mask::rw-, user:ann:rw-' },
  ]);
  expect(
    diffAcl('/f', seen(['user:ann:rw-'], { ...found, entries: ['mask::rw-', 'user:1000:rw-'] }), 0o640, true),
  ).toEqual({
    changes: [],
    awaits: [],
  });
  expect(diffAcl('/f', seen(['user:eve:rw-']), 0o640, false)).toEqual({
    changes: [{ field: 'acl', from: null, to: 'mask::rw-, user:eve:rw-' }],
    awaits: [{ kind: 'accounts', message: 'there is no user eve' }],
  });
});

test('reports the package that the machine lacks', () => {
  const lacking = { ...seen(['user:ann:rw-']), lacksPrograms: true } as const;
  expect(diffAcl('/f', lacking, 0o640, false).awaits).toEqual([
    { kind: 'programs', message: expect.stringContaining('install the package acl') },
  ]);
  expect(() => diffAcl('/f', lacking, 0o640, true)).toThrow('install the package acl');
  expect(() => diffAclRemoval('/f', { group: 4, entries: [] }, lacking)).toThrow('install the package acl');
});

test('restores the previous entries, and gives the owning group no more than it had', () => {
  const before = { group: 4, entries: ['mask::rwx', 'user:1000:rwx'] };
  expect(restoredAcl(before, { uid: 0, gid: 0, mode: 0o670 })).toEqual({ mode: 0o640, entries: before.entries });
  expect(restoredAcl({ group: 4, entries: [] }, { uid: 0, gid: 0, mode: 0o670 }).mode).toBe(0o670);
  expect(diffAclRemoval('/f', before, seen([], { group: 0, entries: [] }))).toEqual([
    { field: 'acl', from: null, to: 'mask::rwx, user:1000:rwx' },
  ]);
});

test('treats permissions that an entry grants as permissions of others', () => {
  expect(widened({ uid: 0, gid: 0, mode: 0o600 }, ['user:1000:r--', 'default:user::rwx', 'mask::rwx']).mode).toBe(
    0o604,
  );
});

test('limits the permissions of the owning group by the mask', () => {
  const masked = { group: 5, entries: ['mask::r--', 'user:1000:rw-'] };
  expect(withinMask({ uid: 0, gid: 0, mode: 0o650 }, seen([], masked)).mode).toBe(0o640);
  expect(withinMask({ uid: 0, gid: 0, mode: 0o650 }, seen([], { group: 5, entries: [] })).mode).toBe(0o650);
});

test('reports a writer that loses its permission', () => {
  const found = { group: 4, entries: ['default:user:1001:rw-', 'mask::rw-', 'user:1000:rw-', 'user:1001:r--'] };
  expect(losesWriter(seen(['user:ann:rw-'], found))).toBe(false);
  expect(losesWriter(seen(['user:ann:r--'], found))).toBe(true);
  expect(losesWriter(seen(['group:1000:rw-'], found))).toBe(true);
  expect(losesWriter(seen([], { group: 4, entries: [] }))).toBe(false);
});

test('refuses two entries for one account', () => {
  expect(() => diffAcl('/f', seen(['user:ann:rw-', 'user:1000:r--']), 0o640, false)).toThrow(
    '`acl` of /f has two entries for one user: ann and 1000; remove one',
  );
  expect(() => diffAcl('/f', seen(['user:ann:rw-', 'default:user:1000:r--']), 0o640, false)).not.toThrow();
});
