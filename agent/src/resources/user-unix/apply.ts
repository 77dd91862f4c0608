import type { ResolvedResource } from '@muster/protocol/module';
import type { AccountFiles } from '../../host/accounts/account-files.ts';
import { processesOf, runAccountTool } from '../../host/accounts/account-tools.ts';
import { HostFailure } from '../../host/failure.ts';
import { inspect } from '../../host/files/inspect.ts';
import { digestOfTree } from '../../host/files/skeleton.ts';
import { removeTree } from '../../host/trees/archive-tools.ts';
import { accountDatabase, findGroup } from '../provider/account-database.ts';
import { changedFields, type Difference, type Machine, type Outcome } from '../provider/provider.ts';
import { touch } from './diff.ts';
import { homeFault } from './home.ts';
import {
  type Body,
  bodyOf,
  getsHome,
  groupIsDeclared,
  groupStays,
  homeOf,
  type Made,
  membershipsOf,
  type SeenUser,
  type User,
  type UserBefore,
  userIn,
  userRecord,
} from './seen.ts';
import { applySignIn, declaresSignIn } from './sign-in.ts';

export const mailbox = (name: string): string => `/var/mail/${name}`;

/** Records account fields that are about to change for the first time. */
export async function rememberUser(
  resource: ResolvedResource,
  seen: SeenUser,
  difference: Difference,
  before: UserBefore | null,
  machine: Machine,
): Promise<UserBefore> {
  const body = bodyOf(resource);
  const { user } = seen;
  if (before?.was === 'absent') {
    // The account was created without a home directory, was removed by hand, and is created again.
    if (user !== null || before.made !== null || !getsHome(body)) return before;
    return { ...before, made: homeToMake(homeOf(body), machine) };
  }
  const files = await machine.database(accountDatabase);
  if (user === null)
    return (
      before ?? {
        was: 'absent',
        made: getsHome(body) ? homeToMake(homeOf(body), machine) : null,
        // With another primary group, useradd creates no group with the account's name.
        keepGroup: body.primary_group != null || groupStays(files, body.name, machine),
        mailWasThere: inspect(machine.walk, mailbox(body.name), false).type !== 'absent',
      }
    );
  const changing = changedFields(difference);
  const record = touch(before ?? { was: 'user', touched: {}, whole: null }, { ...seen, user }, changing, () =>
    membershipsOf(files, user.groups),
  );
  if (!changing.has('ensure') || record.whole !== null) return record;
  return { ...record, whole: userRecord(files, body.name, user, groupIsDeclared(body.name, machine)) };
}

const skeletonPath = '/etc/skel';

/** Returns the home directory to create, or null if it already exists. */
function homeToMake(home: string, machine: Machine): Made | null {
  if (inspect(machine.walk, home, false).type !== 'absent') return null;
  const parents: string[] = [];
  for (let parent = above(home); parent !== ''; parent = above(parent)) {
    if (inspect(machine.walk, parent, false).type !== 'absent') break;
    parents.push(parent);
  }
  return { home, parents, skeleton: digestOfTree(machine.walk, skeletonPath) };
}

const above = (path: string): string => path.slice(0, path.lastIndexOf('/'));

export async function applyUser(
  resource: ResolvedResource,
  seen: SeenUser,
  difference: Difference,
  machine: Machine,
): Promise<Outcome> {
  const body = bodyOf(resource);
  try {
    const files = await machine.database(accountDatabase);
    if (body.ensure === 'absent') {
      const home = seen.homeFault === null ? (seen.user?.home ?? null) : null;
      await removeAccount(body.name, files, groupIsDeclared(body.name, machine), machine, home);
    } else {
      if (seen.user === null) await createAccount(body, files, machine);
      else await changeAccount(body, difference, files, machine);
      if (declaresSignIn(body)) {
        machine.stale(accountDatabase);
        const { shadowOf } = await machine.database(accountDatabase);
        await applySignIn(body, shadowOf(body.name), machine);
      }
    }
  } finally {
    machine.stale(accountDatabase);
  }
  return {};
}

async function changeAccount(
  body: Body,
  { changes }: Difference,
  files: AccountFiles,
  machine: Machine,
): Promise<void> {
  const changing = changedFields({ changes });
  const has = (field: string): boolean => changing.has(field);
  const options = [
    ...(has('uid') ? ['-u', String(body.uid)] : []),
    ...(has('primary_group') ? ['-g', String(declaredGroup(files, body.primary_group as string).gid)] : []),
    ...(has('additional_groups') ? ['-G', supplementaryGroups(files, body).join(',')] : []),
    ...(has('groups_append') ? ['-a', '-G', supplementaryGroups(files, body).join(',')] : []),
    ...(has('comment') ? ['-c', body.comment as string] : []),
    ...(has('home') ? ['-d', body.home as string] : []),
    ...(has('shell') ? ['-s', body.shell as string] : []),
  ];
  if (options.length > 0) await runAccountTool('usermod', [...options, '--', body.name], machine);
}

async function createAccount(body: Body, files: AccountFiles, machine: Machine): Promise<void> {
  const home = homeOf(body);
  const makesHome = getsHome(body) && inspect(machine.walk, home, false).type === 'absent';
  if (makesHome) {
    // Creates parents with the path walk, because it does not follow links that a user could have created.
    const parent = machine.walk.open(above(home), 'make');
    if (parent !== null) machine.walk.release(parent);
  }
  // Uses an existing group with the account's name as the primary group, because useradd would fail to create a group
  // with that name.
  const group =
    body.primary_group != null
      ? String(declaredGroup(files, body.primary_group).gid)
      : files.groups.has(body.name)
        ? body.name
        : null;
  const supplementary = supplementaryGroups(files, body);
  await runAccountTool(
    'useradd',
    [
      ...(body.system === true ? ['-r'] : []),
      ...(body.uid != null ? ['-u', String(body.uid)] : []),
      ...(group === null ? [] : ['-g', group]),
      ...(supplementary.length === 0 ? [] : ['-G', supplementary.join(',')]),
      ...(body.comment != null ? ['-c', body.comment] : []),
      ...(body.home != null ? ['-d', body.home] : []),
      ...(body.shell != null ? ['-s', body.shell] : []),
      makesHome ? '-m' : '-M',
      '--',
      body.name,
    ],
    machine,
  );
}

function declaredGroup(files: AccountFiles, nameOrNumber: string): { name: string; gid: number } {
  const group = findGroup(files, nameOrNumber);
  if (group === null) throw new HostFailure(`there is no group ${nameOrNumber}`);
  return group;
}

const supplementaryGroups = (files: AccountFiles, body: Body): string[] => [
  ...new Set(
    (body.additional_groups ?? body.groups_append ?? []).map((nameOrNumber) => declaredGroup(files, nameOrNumber).name),
  ),
];

/**
 * Removes an account, and no files except the home directory.
 * @param keepGroup whether to keep the group with the account's name, which userdel would remove
 * @param home the home directory to remove; null to keep it
 */
export async function removeAccount(
  name: string,
  files: AccountFiles,
  keepGroup: boolean,
  machine: Machine,
  home: string | null = null,
): Promise<void> {
  const user = userIn(files, name);
  if (user === null) return;
  const running = processesOf(user.uid);
  const shared = [...files.users.values()].some((other) => other.uid === user.uid && other.name !== name);
  if (running.length > 0 && !shared)
    throw new HostFailure(
      `${name} is not removed: its processes are still running: ${running.join(', ')}; end them, or sign the user out, and apply again`,
    );
  // Removes the home directory before the account, so that the next apply can continue if this one is killed in
  // between.
  if (home !== null) await removeHomeTree(home, user, files, name, machine);
  const own = files.groups.get(name);
  if (keepGroup && own !== undefined && own.gid === user.gid) {
    const other = [...files.groups.values()].find(({ gid }) => gid !== own.gid);
    // userdel removes the group only if it is the primary group, so this function sets another primary group. It also
    // sets another home directory, because usermod would otherwise assign the contents of the home directory to the
    // other group.
    if (other !== undefined)
      await runAccountTool('usermod', ['-d', '/nonexistent', '-g', String(other.gid), '--', name], machine);
  }
  await runAccountTool('userdel', ['--', name], machine);
}

/** @throws HostFailure if the home directory changed since it was observed, so that it must not be removed */
async function removeHomeTree(
  home: string,
  user: User,
  files: AccountFiles,
  name: string,
  machine: Machine,
): Promise<void> {
  machine.walk.forget();
  const fault = homeFault(name, user, files, machine);
  if (fault !== null || user.home !== home)
    throw new HostFailure(`the home directory ${home} is not removed: ${fault ?? 'the account has another one now'}`);
  await removeTree(home, machine);
  machine.changedDirectory(above(home));
  machine.walk.forget();
}
