import { isDeepStrictEqual } from 'node:util';
import { isNoHome, type ResolvedResource, type ResourceBodies } from '@muster/protocol/module';
import {
  type AccountFiles,
  type AccountSecrets,
  readAccountSecrets,
  type ShadowEntry,
} from '../../host/accounts/account-files.ts';
import { isKnownElsewhere } from '../../host/accounts/account-tools.ts';
import { inspect } from '../../host/files/inspect.ts';
import { accountDatabase, findGroup } from '../provider/account-database.ts';
import type { Machine } from '../provider/provider.ts';
import { homeFault } from './home.ts';
import { declaresSignIn, type SignInTouched } from './sign-in.ts';

export type Body = ResourceBodies['user-unix'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;

/** An account as the account files define it. */
export type User = {
  uid: number;
  gid: number;
  /** Name of the primary group, or its GID if it has no name. */
  group: string;
  comment: string;
  home: string;
  shell: string;
  /** The supplementary groups, sorted. */
  groups: string[];
};

export interface SeenUser {
  user: User | null;
  /** The name-service sources other than the files, if the user exists only in them; otherwise null. */
  elsewhere: string[] | null;
  /** The local names of the declared groups; null for a group that does not exist. */
  primary: { name: string; gid: number } | null;
  supplementary: { asked: string; name: string | null }[];
  appended: { asked: string; name: string | null }[];
  /** The line in /etc/shadow; null if the account does not exist, or if the resource needs no field of it. */
  shadow: ShadowEntry | null;
  /** Whether the home directory that was created with the account exists; checked only if it may be removed. */
  homeIsThere: boolean;
  /** Why the home directory is not removed with the account; null if it can be. Absent if it is not to be removed. */
  homeFault?: string | null;
  /** Whether the shadow entry equals the recorded entry; checked only if a record may have to be restored. */
  secretsAsBefore: boolean;
}

/** The account before the agent first changed it. */
export type UserBefore =
  | { was: 'absent'; made: Made | null; keepGroup: boolean; mailWasThere: boolean }
  | { was: 'user'; touched: Touched; whole: UserRecord | null };

/** The home directory that was created with the account. */
export type Made = {
  home: string;
  /** Parent directories that were missing, innermost first. */
  parents: string[];
  /** Hash of /etc/skel, from which the home directory was created. */
  skeleton: string;
};

/** The original values of the fields that were changed. */
export type Touched = SignInTouched & {
  uid?: number;
  comment?: string;
  /** Groups that the account joined because of `groups_append`. */
  groups_append?: string[];
  primary_group?: { name: string; gid: number };
  home?: string;
  shell?: string;
  additional_groups?: Membership[];
};

/** A group with all of its members, so that their order can be restored. */
export type Membership = { name: string; members: string[] };

/** A removed account, with all data needed to restore it. */
export type UserRecord = User & {
  memberships: Membership[];
  /** Whether the group with the account's name is removed with it. */
  ownGroup: boolean;
  secrets: AccountSecrets;
};

/** Reports whether a home directory is created with the account. */
export const getsHome = (body: Body): boolean => (body.create_home ?? body.system !== true) && !isNoHome(homeOf(body));
/** Returns the path of a new account's home directory. */
export const homeOf = (body: Body): string => body.home ?? `/home/${body.name}`;

export async function lookAtUser(
  resource: ResolvedResource,
  before: UserBefore | null,
  machine: Machine,
): Promise<SeenUser> {
  const body = bodyOf(resource);
  const files = await machine.database(accountDatabase);
  const user = userIn(files, body.name);
  const made = before?.was === 'absent' ? before.made : null;
  const whole = before?.was === 'user' ? before.whole : null;
  const touched = before?.was === 'user' ? before.touched : {};
  const asks = user === null && files.otherSources.length > 0;
  return {
    user,
    elsewhere: asks && (await isKnownElsewhere('passwd', body.name, machine)) ? [...files.otherSources] : null,
    primary: body.primary_group == null ? null : findGroup(files, body.primary_group),
    supplementary: named(files, body.additional_groups),
    appended: named(files, body.groups_append),
    shadow:
      user !== null && (declaresSignIn(body) || Object.keys(touched).length > 0) ? files.shadowOf(body.name) : null,
    ...(user !== null && body.ensure === 'absent' && body.remove_home === true
      ? { homeFault: homeFault(body.name, user, files, machine) }
      : {}),
    homeIsThere: made !== null && inspect(machine.walk, made.home, false).type === 'directory',
    secretsAsBefore: whole === null || user === null || isDeepStrictEqual(readAccountSecrets(body.name), whole.secrets),
  };
}

const named = (files: AccountFiles, groups: readonly string[] | null | undefined): SeenUser['appended'] =>
  (groups ?? []).map((asked) => ({ asked, name: findGroup(files, asked)?.name ?? null }));

export function userIn(files: AccountFiles, name: string): User | null {
  const entry = files.users.get(name);
  if (entry === undefined) return null;
  const { uid, gid, comment, home, shell } = entry;
  return {
    uid,
    gid,
    group: files.groupByGid(gid)?.name ?? String(gid),
    comment,
    home,
    shell,
    groups: files.groupsOf(name),
  };
}

export const membershipsOf = (files: AccountFiles, groups: readonly string[]): Membership[] =>
  groups.map((name) => ({ name, members: [...(files.groups.get(name)?.members ?? [])] }));

/** Returns the complete record of an account that is about to be removed. */
export function userRecord(files: AccountFiles, name: string, user: User, keepGroup: boolean): UserRecord {
  const own = files.groups.get(name);
  // userdel removes the group with the account's name under these conditions.
  const goesAlong =
    !keepGroup &&
    own !== undefined &&
    own.gid === user.gid &&
    own.members.every((member) => member === name) &&
    files.usersWithGroup(own.gid).every((other) => other === name);
  return {
    ...user,
    memberships: membershipsOf(files, user.groups),
    ownGroup: goesAlong,
    secrets: readAccountSecrets(name),
  };
}

/** Reports whether the group with the account's name is kept, because it existed before or is declared. */
export function groupStays(files: AccountFiles, name: string, machine: Machine): boolean {
  return files.groups.has(name) || groupIsDeclared(name, machine);
}

export const groupIsDeclared = (name: string, machine: Machine): boolean =>
  machine
    .resourcesOf('group-unix')
    .some(({ body }) => (body as ResourceBodies['group-unix']).name === name && !isAbsent(body));

const isAbsent = (body: ResolvedResource['body']): boolean => 'ensure' in body && body.ensure === 'absent';
