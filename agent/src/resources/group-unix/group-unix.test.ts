import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { diffGroup, diffGroupRemoval, type SeenGroup } from './group-unix.ts';
import { membersBefore, rememberMembers } from './members.ts';

const declared = (body: Partial<ResourceBodies['group-unix']> = {}): ResolvedResource<'group-unix'> => ({
  key: 'group-unix:ops',
  module: 'site',
  id: null,
  name: null,
  type: 'group-unix',
  identity: 'ops',
  body: { name: 'ops', ...body },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});
const seen = (gid: number | null, users: SeenGroup['users'] = [], members: string[] = []): SeenGroup => ({
  gid,
  users,
  members,
  unknown: [],
  secretsAsBefore: true,
});
const plan = { purpose: 'plan' } as const;
const ann = { name: 'ann', how: 'member' as const, declared: false };
const bob = { name: 'bob', how: 'primary' as const, declared: false };

test('creates a group, and changes its GID only if one is declared', () => {
  expect(diffGroup(declared({ gid: 7 }), seen(null), plan)).toMatchObject({
    action: 'create',
    changes: [{ field: 'ensure' }, { field: 'gid', from: null, to: '7' }],
  });
  expect(diffGroup(declared({ gid: 7 }), seen(8), plan)).toMatchObject({
    action: 'update',
    changes: [{ field: 'gid', from: '8', to: '7' }],
  });
  expect(diffGroup(declared(), seen(8), plan).action).toBe('none');
});

test('reports the field `system` only for a new group', () => {
  expect(diffGroup(declared({ system: true }), seen(null), plan).changes).toEqual([
    { field: 'ensure', from: 'absent', to: 'present' },
    { field: 'system', from: null, to: 'true' },
  ]);
  expect(diffGroup(declared({ system: true }), seen(1500), plan).action).toBe('none');
});

test('refuses to remove a group that is in use, and lists its users', () => {
  const absent = declared({ ensure: 'absent' });
  expect(() => diffGroup(absent, seen(7, [ann, bob]), plan)).toThrow(/members: ann.*primary group of bob/);
  expect(() => diffGroupRemoval(declared(), { was: 'absent' }, seen(7, [ann]))).toThrow(/members: ann/);
  expect(diffGroup(absent, seen(7, [ann]), { purpose: 'drift' }).action).toBe('remove');
  // An earlier resource of the operation may remove the user from the group, so the plan allows the removal.
  const leaving = seen(7, [{ ...ann, declared: true }]);
  expect(diffGroup(absent, leaving, plan).action).toBe('remove');
  expect(diffGroupRemoval(declared(), { was: 'absent' }, leaving).action).toBe('remove');
});

test('restores the GID of an existing group, and the group itself if the agent removed it', () => {
  const before = { was: 'group' as const, gid: 7, removed: null };
  expect(diffGroupRemoval(declared(), before, seen(8)).changes).toEqual([{ field: 'gid', from: '8', to: '7' }]);
  expect(diffGroupRemoval(declared(), before, seen(7)).action).toBe('none');
  expect(diffGroupRemoval(declared(), before, seen(null)).action).toBe('none');
  const removed = { ...before, removed: { password: '!', administrators: [] } };
  expect(diffGroupRemoval(declared(), removed, seen(null)).changes.map(({ field }) => field)).toEqual([
    'ensure',
    'gid',
  ]);
  const secrets = { ...seen(7), secretsAsBefore: false };
  expect(diffGroupRemoval(declared(), removed, secrets).changes).toEqual([{ field: 'password', from: null, to: null }]);
});

describe('the declaration of members', () => {
  const present = (members: string[]) => seen(7, [], members);
  const changes = (body: Parameters<typeof declared>[0], members: string[]) =>
    diffGroup(declared(body), present(members), plan).changes;

  test('sets exactly the declared members, or adds them to others', () => {
    expect(changes({ members: ['ann', 'bob'] }, ['bob', 'ann'])).toEqual([]);
    expect(changes({ members: ['ann'] }, ['bob', 'ann'])).toEqual([{ field: 'members', from: 'ann,bob', to: 'ann' }]);
    expect(changes({ members: [] }, ['bob'])).toEqual([{ field: 'members', from: 'bob', to: '' }]);
    expect(changes({ members_append: ['ann'] }, ['bob', 'ann'])).toEqual([]);
    expect(changes({ members_append: ['eve'] }, ['bob'])).toEqual([
      { field: 'members_append', from: 'bob', to: 'bob,eve' },
    ]);
  });

  test('waits for accounts that an earlier resource may create', () => {
    const unknown = { ...present([]), unknown: ['ann'] };
    expect(diffGroup(declared({ members: ['ann'] }), unknown, plan).awaits).toEqual([
      { kind: 'accounts', message: 'there is no user ann' },
    ]);
  });

  test('restores the members in their original order, and keeps members who joined later', () => {
    const body = (fields: object) => ({ name: 'ops', ...fields });
    const exact = rememberMembers(body({ members: ['eve', 'ann'] }), ['bob', 'ann'], {});
    expect(membersBefore(exact, ['ann', 'eve', 'new'])).toEqual(['bob', 'ann']);
    const more = rememberMembers(body({ members_append: ['bob'] }), ['ann', 'eve'], exact);
    expect(membersBefore(more, ['ann', 'eve', 'bob'])).toEqual(['bob', 'ann']);
    const appended = rememberMembers(body({ members_append: ['eve', 'bob'] }), ['bob'], {});
    expect(membersBefore(appended, ['bob', 'eve', 'new'])).toEqual(['bob', 'new']);
  });

  test('removes a group that the agent created with its members, unless other users joined it', () => {
    const before = { was: 'absent' as const, added: ['ann'] };
    expect(diffGroupRemoval(declared(), before, seen(7, [ann], ['ann'])).action).toBe('remove');
    const eve = { name: 'eve', how: 'member' as const, declared: false };
    expect(() => diffGroupRemoval(declared(), before, seen(7, [ann, eve], ['ann', 'eve']))).toThrow(/members: eve/);
  });
});
