import { isDeepStrictEqual } from 'node:util';
import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { type AccountFiles, type GroupSecrets, readGroupSecrets } from '../../host/accounts/account-files.ts';
import { runAccountTool } from '../../host/accounts/account-tools.ts';
import { HostFailure } from '../../host/failure.ts';
import { accountDatabase } from '../provider/account-database.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, type Machine, nothing, presenceDrift, restoring, withChanges } from '../provider/provider.ts';
import { checkAccountName } from '../user-unix/user-unix.ts';
import {
  applyMembers,
  type MembersBefore,
  memberChanges,
  membersBefore,
  rememberMembers,
  setMembers,
} from './members.ts';

export interface SeenGroup {
  gid: number | null;
  /** Members, and users for whom it is the primary group. */
  users: GroupUser[];
  /** Members in file order. */
  members: string[];
  /** Declared members that have no account. */
  unknown: string[];
  /**
   * Whether the password and the administrators equal the recorded ones; checked only if a record may have to be
   * restored.
   */
  secretsAsBefore: boolean;
}

interface GroupUser {
  name: string;
  how: 'member' | 'primary';
  /** Whether this operation also declares the account, and may therefore remove the account from the group first. */
  declared: boolean;
}

/** The group before the agent first changed it. */
export type GroupBefore = MembersBefore &
  ({ was: 'absent' } | { was: 'group'; gid: number; removed: GroupSecrets | null });

type Declared = ResolvedResource<'group-unix'>;

/** A group in /etc/group, managed with the tools of shadow-utils. */
export const groupUnix = defineProvider<'group-unix', SeenGroup, GroupBefore>({
  type: 'group-unix',
  fields: {
    name: 'text',
    gid: 'integer?',
    members: 'list?',
    members_append: 'list?',
    system: 'boolean?',
    ensure: 'text?',
  },
  brings: () => ['accounts'],
  watched: () => ['/etc/group'],
  check({ body }) {
    for (const name of [body.name, ...(body.members ?? []), ...(body.members_append ?? [])]) checkAccountName(name);
  },
  observe: (resource, _circumstances, machine) => look(resource, null, machine),
  diff: diffGroup,

  async remember(resource, seen, _difference, before) {
    const { name, ensure } = resource.body;
    const start = before ?? (seen.gid === null ? { was: 'absent' } : { was: 'group', gid: seen.gid, removed: null });
    if (ensure !== 'absent') return { ...start, ...rememberMembers(resource.body, seen.members, start) };
    return start.was === 'absent' || start.removed !== null || seen.gid === null
      ? start
      : { ...start, removed: readGroupSecrets(name) };
  },

  async apply({ body }, seen, _difference, machine) {
    const { name, gid, system, ensure } = body;
    if (ensure === 'absent') return remove(name, [], machine);
    const number = gid == null ? [] : ['-g', String(gid)];
    if (seen.gid === null)
      await change(machine, 'groupadd', [...(system === true ? ['-r'] : []), ...number, '--', name]);
    else if (gid != null && seen.gid !== gid) await change(machine, 'groupmod', [...number, '--', name]);
    try {
      await applyMembers(body, seen.members, machine);
    } finally {
      machine.stale(accountDatabase);
    }
    return {};
  },

  observeForRemoval: look,
  diffRemoval: (resource, before, seen) => diffGroupRemoval(resource, before, seen),

  async remove(resource, before, seen, _difference, machine) {
    const { name } = resource.body;
    if (before.was === 'absent') return remove(name, before.added ?? [], machine);
    if (seen.gid !== before.gid)
      await change(machine, seen.gid === null ? 'groupadd' : 'groupmod', ['-g', String(before.gid), '--', name]);
    if (before.removed !== null) await restoreSecrets(name, before.removed, machine);
    try {
      const { users, otherSources } = await machine.database(accountDatabase);
      const back = membersBefore(before, seen.members);
      const known = otherSources.length > 0 ? back : back.filter((member) => users.has(member));
      await setMembers(name, seen.members, known, machine);
    } finally {
      machine.stale(accountDatabase);
    }
    return {};
  },
});

async function look(resource: Declared, before: GroupBefore | null, machine: Machine): Promise<SeenGroup> {
  const files = await machine.database(accountDatabase);
  const { name } = resource.body;
  const declared = new Set(
    machine.resourcesOf('user-unix').map(({ body }) => (body as ResourceBodies['user-unix']).name),
  );
  const users = usersOf(files, name).map((user) => ({ ...user, declared: declared.has(user.name) }));
  const { gid = null, members = [] } = files.groups.get(name) ?? {};
  const asked = [...(resource.body.members ?? []), ...(resource.body.members_append ?? [])];
  // Another source may provide an account that is not in the files.
  const unknown = files.otherSources.length > 0 ? [] : asked.filter((member) => !files.users.has(member));
  const removed = before?.was === 'group' ? before.removed : null;
  const secretsAsBefore = removed === null || gid === null || isDeepStrictEqual(readGroupSecrets(name), removed);
  return { gid, users, members: [...members], unknown, secretsAsBefore };
}

function usersOf(files: AccountFiles, name: string): Pick<GroupUser, 'name' | 'how'>[] {
  const group = files.groups.get(name);
  if (group === undefined) return [];
  return [
    ...group.members.map((member) => ({ name: member, how: 'member' as const })),
    ...files.usersWithGroup(group.gid).map((user) => ({ name: user, how: 'primary' as const })),
  ];
}

export function diffGroup(
  resource: Declared,
  seen: SeenGroup,
  { purpose }: { purpose: 'apply' | 'plan' | 'drift' },
): Difference {
  const { name, gid, system, ensure } = resource.body;
  if (ensure === 'absent') {
    if (seen.gid === null) return nothing();
    if (purpose === 'drift') return presenceDrift();
    refuseUsed(
      name,
      seen.users.filter(({ declared }) => !declared),
    );
    return presenceDrift();
  }
  const changes: FieldChange[] = [];
  if (seen.gid === null) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (gid != null && seen.gid !== gid)
    changes.push({ field: 'gid', from: seen.gid === null ? null : String(seen.gid), to: String(gid) });
  changes.push(...memberChanges(resource.body, seen.gid === null ? null : seen.members));
  // Compares the field only for a new group, because an existing one does not show how it was created.
  if (system != null && seen.gid === null) changes.push({ field: 'system', from: null, to: String(system) });
  const awaits = seen.unknown.map((user) => ({ kind: 'accounts' as const, message: `there is no user ${user}` }));
  const renumbered = seen.gid !== null && changes.some(({ field }) => field === 'gid');
  const message = renumbered ? 'existing files keep the old number' : undefined;
  return withChanges(seen.gid === null ? 'create' : 'update', changes, { awaits, message });
}

export function diffGroupRemoval(resource: Declared, before: GroupBefore, seen: SeenGroup): Difference {
  const { name } = resource.body;
  if (before.was === 'absent') {
    if (seen.gid === null) return nothing('already removed');
    refuseUsed(
      name,
      seen.users.filter(({ declared, ...user }) => !declared && !isOurs(user, before.added ?? [])),
    );
    return presenceDrift();
  }
  if (seen.gid === null && before.removed === null)
    return nothing('already removed, but not by the agent, so the agent does not create it again');
  const changes: FieldChange[] = [];
  if (seen.gid === null) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  if (seen.gid !== before.gid)
    changes.push({ field: 'gid', from: seen.gid === null ? null : String(seen.gid), to: String(before.gid) });
  const members = membersBefore(before, seen.members);
  if (seen.gid !== null && members.join() !== seen.members.join())
    changes.push({ field: 'members', from: seen.members.join(), to: members.join() });
  // The report states only that the password is restored, without its value.
  if (seen.gid !== null && !seen.secretsAsBefore) changes.push({ field: 'password', from: null, to: null });
  return restoring(changes);
}

/** Reports whether the user is a member because of the group's declaration. */
const isOurs = ({ name, how }: Pick<GroupUser, 'name' | 'how'>, added: readonly string[]): boolean =>
  how === 'member' && added.includes(name);

function refuseUsed(name: string, users: readonly Pick<GroupUser, 'name' | 'how'>[]): void {
  if (users.length === 0) return;
  const list = (how: GroupUser['how']) => users.filter((user) => user.how === how).map((user) => user.name);
  const parts: string[] = [];
  if (list('member').length > 0) parts.push(`it has members: ${some(list('member'))}`);
  if (list('primary').length > 0) parts.push(`it is the primary group of ${some(list('primary'))}`);
  throw new HostFailure(`the group ${name} is not removed: ${parts.join(', and ')}. Remove them from the group first.`);
}

const some = (names: readonly string[]): string =>
  names.length > 10 ? `${names.slice(0, 10).join(', ')} and ${names.length - 10} more` : names.join(', ');

async function remove(name: string, added: readonly string[], machine: Machine): Promise<Record<string, never>> {
  const files = await machine.database(accountDatabase);
  if (!files.groups.has(name)) return {};
  refuseUsed(
    name,
    usersOf(files, name).filter((user) => !isOurs(user, added)),
  );
  return change(machine, 'groupdel', ['--', name]);
}

async function restoreSecrets(name: string, secrets: GroupSecrets, machine: Machine): Promise<void> {
  const now = readGroupSecrets(name);
  if (secrets.password !== null && secrets.password !== now.password)
    await runAccountTool('chgpasswd', ['-e'], machine, `${name}:${secrets.password}\n`);
  if (secrets.administrators.join() !== now.administrators.join())
    await runAccountTool('gpasswd', ['-A', secrets.administrators.join(','), name], machine);
}

async function change(
  machine: Machine,
  tool: 'groupadd' | 'groupmod' | 'groupdel',
  args: readonly string[],
): Promise<Record<string, never>> {
  try {
    await runAccountTool(tool, args, machine);
  } finally {
    machine.stale(accountDatabase);
  }
  return {};
}
