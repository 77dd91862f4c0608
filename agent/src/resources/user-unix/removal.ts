import { isDeepStrictEqual } from 'node:util';
import type { ResolvedResource } from '@muster/protocol/module';
import { type Range, readAccountSecrets } from '../../host/accounts/account-files.ts';
import { runAccountTool } from '../../host/accounts/account-tools.ts';
import { HostFailure } from '../../host/failure.ts';
import { expectUnchanged, inspect } from '../../host/files/inspect.ts';
import { removeDirectory, removeFile } from '../../host/files/remove.ts';
import { removeIfUntouched } from '../../host/files/skeleton.ts';
import { accountDatabase } from '../provider/account-database.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { mailbox, removeAccount } from './apply.ts';
import { backTo, groupList } from './diff.ts';
import {
  bodyOf,
  groupIsDeclared,
  type Made,
  type Membership,
  type UserBefore,
  type UserRecord,
  userIn,
} from './seen.ts';
import { forTool, restoreSignIn, setPassword } from './sign-in.ts';

/** Removes an account that the agent created, or restores a previous account. */

export async function removeOrRestoreUser(
  resource: ResolvedResource,
  before: UserBefore,
  machine: Machine,
): Promise<Outcome> {
  const { name } = bodyOf(resource);
  const said: string[] = [];
  try {
    const files = await machine.database(accountDatabase);
    if (before.was === 'absent') {
      const keepGroup = before.keepGroup || groupIsDeclared(name, machine);
      await removeAccount(name, files, keepGroup, machine);
      if (!keepGroup) await removeOwnGroup(name, machine);
      if (before.made !== null) said.push(...removeHome(before.made, machine));
      if (!before.mailWasThere) said.push(...removeMailbox(name, machine));
    } else {
      if (before.whole !== null) await restoreAccount(name, before.whole, machine);
      said.push(...(await restoreFields(name, before, machine)));
    }
  } finally {
    machine.stale(accountDatabase);
  }
  return said.length === 0 ? {} : { message: said.join('; ') };
}

/** Removes the group that was created with the account. userdel keeps that group if it is not the primary one. */
async function removeOwnGroup(name: string, machine: Machine): Promise<void> {
  machine.stale(accountDatabase);
  const files = await machine.database(accountDatabase);
  const group = files.groups.get(name);
  if (group === undefined || group.members.length > 0 || files.usersWithGroup(group.gid).length > 0) return;
  await runAccountTool('groupdel', ['--', name], machine);
}

function removeHome({ home, parents, skeleton }: Made, machine: Machine): string[] {
  if (machine.declared(home)) return [`its home directory ${home} is kept, because it is declared`];
  if (!removeIfUntouched(machine.walk, home, skeleton))
    return [`its home directory ${home} is kept, because it was replaced or its content has changed`];
  for (const parent of parents) {
    if (machine.declared(parent)) break;
    machine.walk.forget();
    const isRemoved =
      machine.walk.within(parent, 'null', (directory, name) => removeDirectory(directory, name)) ?? true;
    if (!isRemoved) break;
  }
  return [];
}

/** Removes the mailbox that the account tools may have created, unless it contains mail. */
function removeMailbox(name: string, machine: Machine): string[] {
  const path = mailbox(name);
  const found = inspect(machine.walk, path, false);
  if (found.type !== 'file') return [];
  if (found.size > 0) return [`its mail in ${path} is kept`];
  machine.walk.within(path, 'null', (parent, file) => {
    // Mail may have arrived since the observation.
    expectUnchanged(parent, file, found);
    removeFile(parent, file);
  });
  return [];
}

/**
 * Restores a removed account, or replaces a new account of that name. `restoreFields` restores the individual fields
 * afterwards.
 */
async function restoreAccount(name: string, record: UserRecord, machine: Machine): Promise<void> {
  const { groups, users } = await machine.database(accountDatabase);
  const own = groups.get(name);
  if (record.ownGroup && own?.gid !== record.gid)
    await runAccountTool(own === undefined ? 'groupadd' : 'groupmod', ['-g', String(record.gid), '--', name], machine);
  const now = users.get(name);
  if (now === undefined)
    await runAccountTool(
      'useradd',
      [
        // A system account gets no new subordinate IDs.
        ...['-r', '-M', '-u', String(record.uid), '-g', String(record.gid), '-d', record.home, '-s', record.shell],
        ...(record.comment === '' ? [] : ['-c', record.comment]),
        '--',
        name,
      ],
      machine,
    );
  else if (now.comment !== record.comment) await runAccountTool('usermod', ['-c', record.comment, '--', name], machine);
  machine.stale(accountDatabase);
  const secrets = readAccountSecrets(name);
  await restoreRanges(name, ['-V', '-v'], secrets.subordinateUids, record.secrets.subordinateUids, machine);
  await restoreRanges(name, ['-W', '-w'], secrets.subordinateGids, record.secrets.subordinateGids, machine);
  await restoreSecrets(name, record, machine);
}

async function restoreRanges(
  name: string,
  [remove, add]: [string, string],
  now: readonly Range[],
  requested: readonly Range[],
  machine: Machine,
): Promise<void> {
  if (isDeepStrictEqual(now, requested)) return;
  // Runs usermod for each range, because one call would write several ranges in reverse order.
  for (const range of now) await runAccountTool('usermod', [remove, written(range), '--', name], machine);
  for (const range of requested) await runAccountTool('usermod', [add, written(range), '--', name], machine);
}

const written = ({ first, count }: Range): string => `${first}-${first + count - 1}`;

/** Restores the password and its aging. */
async function restoreSecrets(name: string, { secrets }: UserRecord, machine: Machine): Promise<void> {
  const { password, ageing } = secrets;
  if (password === null) return;
  await setPassword(name, null, password, machine);
  const age = (i: number): string => forTool(ageing[i]);
  await runAccountTool(
    'chage',
    ['-d', age(0), '-m', age(1), '-M', age(2), '-W', age(3), '-I', age(4), '-E', age(5), '--', name],
    machine,
  );
}

async function restoreFields(
  name: string,
  before: Extract<UserBefore, { was: 'user' }>,
  machine: Machine,
): Promise<string[]> {
  const back = backTo(before);
  machine.stale(accountDatabase);
  const files = await machine.database(accountDatabase);
  const now = userIn(files, name);
  if (now === null) return [];
  const args: string[] = [];
  const set = (flag: string, value: string) => args.push(flag, value);
  if (back.uid !== undefined && back.uid !== now.uid) set('-u', String(back.uid));
  if (back.primary_group !== undefined && back.primary_group.gid !== now.gid) set('-g', String(back.primary_group.gid));
  if (back.home !== undefined && back.home !== now.home) set('-d', back.home);
  if (back.shell !== undefined && back.shell !== now.shell) set('-s', back.shell);
  const memberships = back.additional_groups ?? [];
  const there = memberships.filter((group) => files.groups.has(group.name));
  const groups = groupList(
    back.additional_groups === undefined
      ? now.groups.filter((group) => back.groups_append?.includes(group) !== true)
      : there.map((group) => group.name),
  );
  if (groups !== groupList(now.groups)) set('-G', groups);
  if (back.comment !== undefined && back.comment !== now.comment) set('-c', back.comment);
  if (args.length > 0) {
    await runAccountTool('usermod', [...args, '--', name], machine);
    machine.stale(accountDatabase);
  }
  await restoreSignIn(name, before.touched, (await machine.database(accountDatabase)).shadowOf(name), machine);
  const missing = memberships.filter((group) => !files.groups.has(group.name)).map((group) => group.name);
  return [
    ...(missing.length === 0 ? [] : [`it was in groups that no longer exist: ${missing.join(', ')}`]),
    ...(await restoreOrder(there, machine)),
  ];
}

/** Restores the order of a group's members, unless other members were added or removed. */
async function restoreOrder(memberships: readonly Membership[], machine: Machine): Promise<string[]> {
  const files = await machine.database(accountDatabase);
  const said: string[] = [];
  for (const { name, members } of memberships) {
    const now = files.groups.get(name)?.members ?? [];
    const same = [...now].sort().join(',') === [...members].sort().join(',');
    if (!same || now.join(',') === members.join(',')) continue;
    try {
      await runAccountTool('gpasswd', ['-M', members.join(','), name], machine);
    } catch (error) {
      // Fails if a member exists only in another name-service source. The membership is correct, but the order is not.
      if (!(error instanceof HostFailure)) throw error;
      said.push(`the members of ${name} are in a different order than before`);
    }
  }
  return said;
}
