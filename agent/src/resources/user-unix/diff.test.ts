import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { diffUser, diffUserRemoval, touch } from './diff.ts';
import type { SeenUser, User, UserBefore } from './seen.ts';

type Body = ResourceBodies['user-unix'];

const declared = (body: Partial<Body> = {}): ResolvedResource => ({
  key: 'user-unix:ann',
  module: 'site',
  id: null,
  name: null,
  type: 'user-unix',
  identity: 'ann',
  body: { name: 'ann', ...body },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});

const ann: User = {
  uid: 1500,
  gid: 1500,
  group: 'ann',
  comment: '',
  home: '/home/ann',
  shell: '/bin/sh',
  groups: ['audio', 'games'],
};
const groups: Record<string, number> = { ann: 1500, audio: 29, games: 60, video: 44 };

/** Returns the observation of an account on a machine that has `groups`. */
function seen(user: User | null, body: Partial<Body> = {}, rest: Partial<SeenUser> = {}): SeenUser {
  const find = (nameOrNumber: string) =>
    Object.entries(groups).find(([name, gid]) => name === nameOrNumber || String(gid) === nameOrNumber) ?? null;
  const primary = body.primary_group == null ? null : find(body.primary_group);
  return {
    user,
    elsewhere: null,
    primary: primary === null ? null : { name: primary[0], gid: primary[1] },
    supplementary: (body.additional_groups ?? []).map((asked) => ({ asked, name: find(asked)?.[0] ?? null })),
    appended: (body.groups_append ?? []).map((asked) => ({ asked, name: find(asked)?.[0] ?? null })),
    shadow: null,
    homeIsThere: false,
    secretsAsBefore: true,
    ...rest,
  };
}
const plan = { purpose: 'plan' } as const;
const diff = (user: User | null, body: Partial<Body>) => diffUser(declared(body), seen(user, body), plan);
const fields = ({ changes }: { changes: { field: string }[] }) => changes.map(({ field }) => field);

describe('the declaration of an account', () => {
  test('changes only the declared fields of an account; absent and null fields are not managed', () => {
    expect(diff(ann, {}).action).toBe('none');
    const nulls = { uid: null, shell: null, additional_groups: null } as unknown as Partial<Body>;
    expect(diff(ann, nulls).action).toBe('none');
    expect(diff(ann, { system: true }).action).toBe('none');
  });

  test('creates a missing account with each of its fields', () => {
    const made = diff(null, { uid: 7, primary_group: 'games', additional_groups: [], shell: '/bin/sh', system: true });
    expect(made.action).toBe('create');
    expect(made.changes).toEqual([
      { field: 'ensure', from: 'absent', to: 'present' },
      { field: 'uid', from: null, to: '7' },
      { field: 'primary_group', from: null, to: 'games' },
      { field: 'shell', from: null, to: '/bin/sh' },
      { field: 'system', from: null, to: 'true' },
    ]);
  });

  test.each<[Partial<Body>, boolean]>([
    [{}, true],
    [{ system: true }, false],
    [{ create_home: false }, false],
    [{ system: true, create_home: true }, true],
    [{ create_home: true, home: '/nonexistent' }, false],
  ])('creates a home directory for the declaration %j: %s', (fields, made) => {
    expect(diff(null, fields).message !== undefined).toBe(made);
    expect(diff(ann, fields).changes.filter(({ field }) => field !== 'home')).toEqual([]);
  });

  test('accepts a primary group by GID or by name', () => {
    expect(diff(ann, { primary_group: '1500', additional_groups: ['60', 'games', 'audio'] }).action).toBe('none');
    expect(diff(ann, { primary_group: '60' }).changes).toEqual([{ field: 'primary_group', from: 'ann', to: 'games' }]);
  });

  test('sets exactly the declared supplementary groups', () => {
    const change = (additional_groups: string[]) => diff(ann, { additional_groups }).changes;
    expect(change(['games', 'audio'])).toEqual([]);
    expect(change(['audio'])).toEqual([{ field: 'additional_groups', from: 'audio,games', to: 'audio' }]);
    expect(change(['audio', 'video'])).toEqual([
      { field: 'additional_groups', from: 'audio,games', to: 'audio,video' },
    ]);
    expect(change([])).toEqual([{ field: 'additional_groups', from: 'audio,games', to: '' }]);
  });

  test('waits for groups that an earlier resource of the operation may create', () => {
    const { awaits } = diff(null, { primary_group: 'later', additional_groups: ['audio', 'too'] });
    expect(awaits).toEqual([
      { kind: 'accounts', message: 'there is no group later' },
      { kind: 'accounts', message: 'there is no group too' },
    ]);
  });

  test('refuses an account from a directory service', () => {
    const elsewhere = seen(null, {}, { elsewhere: ['sss'] });
    expect(() => diffUser(declared(), elsewhere, plan)).toThrow(/not in \/etc\/passwd.*sss/);
  });

  test('removes the home directory only if that is declared and allowed', () => {
    const absent = (rest: Partial<SeenUser>) =>
      diffUser(declared({ ensure: 'absent', remove_home: true }), seen(ann, {}, rest), plan);
    expect(absent({}).message).toContain('is kept');
    expect(absent({ homeFault: null }).message).toContain(
      '/home/ann is removed with its content, which nothing restores',
    );
    expect(() => absent({ homeFault: 'it belongs to another user' })).toThrow(
      'is not removed: it belongs to another user',
    );
  });

  test('refuses to remove the superuser under any name', () => {
    expect(() => diff({ ...ann, uid: 0 }, { ensure: 'absent' })).toThrow(/superuser/);
  });
});

describe('removal', () => {
  const created: UserBefore = { was: 'absent', made: null, keepGroup: false, mailWasThere: false };

  test('removes an account that the agent created, or only its remaining home directory', () => {
    const made = { ...created, made: { home: '/home/ann', parents: [], skeleton: 'x' } };
    expect(diffUserRemoval(declared(), created, seen(ann)).action).toBe('remove');
    expect(diffUserRemoval(declared(), created, seen(null)).action).toBe('none');
    expect(diffUserRemoval(declared(), made, seen(null, {}, { homeIsThere: true })).action).toBe('remove');
  });

  test('restores a pre-existing account only if the agent removed it', () => {
    const before: UserBefore = { was: 'user', touched: { uid: 3 }, whole: null };
    expect(diffUserRemoval(declared(), before, seen(null)).action).toBe('none');
    const secrets = { password: '!', ageing: [], subordinateUids: [], subordinateGids: [] };
    const whole = { ...ann, memberships: [{ name: 'audio', members: ['ann'] }], ownGroup: true, secrets };
    const again = diffUserRemoval(declared(), { ...before, whole }, seen(null));
    expect(fields(again)).toEqual(['ensure', 'uid', 'primary_group', 'additional_groups', 'home', 'shell']);
    expect(again.changes.find(({ field }) => field === 'uid')?.to).toBe('3');
  });

  test('removes an account only from groups that the agent added it to', () => {
    const changing = new Set(['groups_append']);
    const start: Extract<UserBefore, { was: 'user' }> = { was: 'user', touched: {}, whole: null };
    const joins = (before: typeof start, groups: string[]) =>
      touch(before, { ...seen(ann, { groups_append: groups }), user: ann }, changing, () => []);
    const before = joins(joins(start, ['video', 'audio']), ['60', 'ops']);
    expect(before.touched.groups_append).toEqual(['ops', 'video']);
    const now = { ...ann, groups: ['audio', 'later', 'ops', 'video'] };
    expect(diffUserRemoval(declared(), before, seen(now)).changes).toEqual([
      { field: 'groups_append', from: 'audio,later,ops,video', to: 'audio,later' },
    ]);
    // An earlier declaration of `groups` has already recorded the original groups.
    const exact = { ...start, touched: { additional_groups: [{ name: 'video', members: ['ann'] }] } };
    expect(joins(exact, ['video', 'ops']).touched.groups_append).toEqual(['ops']);
  });

  test('restores the original values of exactly the fields that applies changed', () => {
    const field = fc.subarray(['uid', 'primary_group', 'additional_groups', 'home', 'shell']);
    fc.assert(
      fc.property(fc.array(field, { minLength: 1, maxLength: 4 }), (steps) => {
        const other: User = { ...ann, uid: 9, gid: 60, group: 'games', home: '/x', shell: '/bin/x', groups: [] };
        let before: Extract<UserBefore, { was: 'user' }> = { was: 'user', touched: {}, whole: null };
        let now = ann;
        for (const changing of steps) {
          const present = now;
          before = touch(before, { ...seen(present), user: present }, new Set(changing), () =>
            present.groups.map((name) => ({ name, members: ['ann'] })),
          );
          now = {
            ...now,
            ...(changing.includes('uid') ? { uid: other.uid } : {}),
            ...(changing.includes('primary_group') ? { gid: other.gid, group: other.group } : {}),
            ...(changing.includes('additional_groups') ? { groups: other.groups } : {}),
            ...(changing.includes('home') ? { home: other.home } : {}),
            ...(changing.includes('shell') ? { shell: other.shell } : {}),
          };
        }
        const removal = diffUserRemoval(declared(), before, seen(now));
        expect(fields(removal).sort()).toEqual([...new Set(steps.flat())].sort());
        for (const { field: name, to } of removal.changes)
          expect(to).toBe(
            {
              uid: '1500',
              primary_group: 'ann',
              additional_groups: 'audio,games',
              home: '/home/ann',
              shell: '/bin/sh',
            }[name],
          );
      }),
    );
  });
});
