import type { FieldChange } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import {
  type Circumstances,
  type Difference,
  nothing,
  presenceDrift,
  restoring,
  withChanges,
} from '../provider/provider.ts';
import { bodyOf, getsHome, homeOf, type SeenUser, type User, type UserBefore } from './seen.ts';
import { declaresSignIn, signInBack, signInChanges, touchSignIn, unlockFault } from './sign-in.ts';

export const groupList = (groups: readonly string[]): string => groups.join(',');

export function diffUser(
  resource: ResolvedResource,
  seen: SeenUser,
  { purpose }: Pick<Circumstances, 'purpose'>,
): Difference {
  const body = bodyOf(resource);
  const { user } = seen;
  if (seen.elsewhere !== null)
    throw new HostFailure(
      `${body.name} is not in /etc/passwd: it comes from another source in /etc/nsswitch.conf (${seen.elsewhere.join(', ')}). Only accounts in /etc/passwd can be managed.`,
    );
  if (body.ensure === 'absent') {
    if (user === null) return nothing();
    if (purpose === 'drift') return presenceDrift();
    if (user.uid === 0) throw new HostFailure(`${body.name} has number 0: the superuser is not removed`);
    if (seen.homeFault === undefined) return { ...presenceDrift(), message: `its home directory ${user.home} is kept` };
    if (seen.homeFault !== null)
      throw new HostFailure(`the home directory ${user.home} is not removed: ${seen.homeFault}`);
    return {
      ...presenceDrift(),
      message: `its home directory ${user.home} is removed with its content, which nothing restores`,
    };
  }
  const changes: FieldChange[] = [];
  if (user === null) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  const compare = (field: string, from: string | null, to: string, same: boolean) => {
    if (!same) changes.push({ field, from, to });
  };
  const awaits: NonNullable<Difference['awaits']> = [];
  const missing = (group: string) => awaits.push({ kind: 'accounts', message: `there is no group ${group}` });
  if (body.uid != null) compare('uid', numberOf(user?.uid), String(body.uid), user?.uid === body.uid);
  if (body.primary_group != null) {
    if (seen.primary === null) missing(body.primary_group);
    const same = user !== null && user.gid === seen.primary?.gid;
    compare('primary_group', user?.group ?? null, seen.primary?.name ?? body.primary_group, same);
  }
  if (body.additional_groups != null) {
    for (const { asked, name } of seen.supplementary) if (name === null) missing(asked);
    const declared = [...new Set(seen.supplementary.map(({ asked, name }) => name ?? asked))].sort();
    const same = user !== null && groupList(user.groups) === groupList(declared);
    // A new account without declared groups has no additional groups, so nothing changes.
    if (user !== null || declared.length > 0)
      compare('additional_groups', user === null ? null : groupList(user.groups), groupList(declared), same);
  }
  if (body.groups_append != null) {
    for (const { asked, name } of seen.appended) if (name === null) missing(asked);
    const joins = joining(seen);
    const all = groupList([...(user?.groups ?? []), ...joins].sort());
    compare('groups_append', user === null ? null : groupList(user.groups), all, joins.length === 0);
  }
  if (body.comment != null) compare('comment', user?.comment ?? null, body.comment, user?.comment === body.comment);
  if (body.home != null) compare('home', user?.home ?? null, body.home, user?.home === body.home);
  if (body.shell != null) compare('shell', user?.shell ?? null, body.shell, user?.shell === body.shell);
  if (declaresSignIn(body)) {
    const fault = unlockFault(body, seen.shadow);
    if (fault !== null && purpose !== 'drift') throw new HostFailure(fault);
    changes.push(...signInChanges(body, seen.shadow));
  }
  // Compares the field only for a new account, because an existing one does not show how it was created.
  if (body.system != null && user === null) changes.push({ field: 'system', from: null, to: String(body.system) });
  const message = user === null ? creationMessage(resource) : changeMessage(changes);
  return withChanges(user === null ? 'create' : 'update', changes, { awaits, message });
}

/** Returns the groups of `groups_append` that the account is not in, under their local names. */
const joining = ({ user, appended }: Pick<SeenUser, 'user' | 'appended'>): string[] => [
  ...new Set(appended.map(({ asked, name }) => name ?? asked).filter((name) => user?.groups.includes(name) !== true)),
];

const numberOf = (id: number | undefined): string | null => (id === undefined ? null : String(id));

const creationMessage = (resource: ResolvedResource): string | null => {
  const body = bodyOf(resource);
  return getsHome(body) ? `with the home directory ${homeOf(body)}` : null;
};

const changeMessage = (changes: readonly FieldChange[]): string | null =>
  changes.some(({ field }) => field === 'home')
    ? 'the account gets another home directory; the contents of the old one are not moved'
    : null;

/**
 * Decides about a removal, which restores changed fields, removes an account that the agent created, and restores an
 * account that it removed.
 */
export function diffUserRemoval(resource: ResolvedResource, before: UserBefore, seen: SeenUser): Difference {
  const { name } = bodyOf(resource);
  const { user } = seen;
  if (before.was === 'absent') {
    if (user === null && !seen.homeIsThere) return nothing('already removed');
    const removal: Difference = {
      action: 'remove',
      changes: [{ field: 'ensure', from: 'present', to: 'absent' }],
      diff: null,
    };
    if (user?.uid === 0) throw new HostFailure(`${name} now has number 0: the superuser is not removed`);
    return before.made === null
      ? removal
      : {
          ...removal,
          message: `its home directory ${before.made.home} is removed only if its content has not changed`,
        };
  }
  if (user === null && before.whole === null)
    return nothing('already removed, but not by the agent, so the agent does not create it again');
  const changes = fieldsBack(before, user);
  if (user !== null && seen.shadow !== null) changes.push(...signInBack(before.touched, seen.shadow));
  // The report states only that the password is restored, without its value.
  if (user !== null && !seen.secretsAsBefore) changes.push({ field: 'password', from: null, to: null });
  return restoring(changes);
}

/** Returns the changes that restore the fields in /etc/passwd and /etc/group. */
function fieldsBack(before: Extract<UserBefore, { was: 'user' }>, user: User | null): FieldChange[] {
  const changes: FieldChange[] = [];
  if (user === null) changes.push({ field: 'ensure', from: 'absent', to: 'present' });
  const back = backTo(before);
  if (back.uid !== undefined && user?.uid !== back.uid)
    changes.push({ field: 'uid', from: numberOf(user?.uid), to: String(back.uid) });
  if (back.primary_group !== undefined && user?.gid !== back.primary_group.gid)
    changes.push({ field: 'primary_group', from: user?.group ?? null, to: back.primary_group.name });
  if (back.additional_groups !== undefined) {
    const groups = groupList(back.additional_groups.map(({ name }) => name));
    const now = user === null ? '' : groupList(user.groups);
    if (now !== groups) changes.push({ field: 'additional_groups', from: user === null ? null : now, to: groups });
  }
  const joined = (back.groups_append ?? []).filter((group) => user?.groups.includes(group) === true);
  if (user !== null && back.additional_groups === undefined && joined.length > 0)
    changes.push({
      field: 'groups_append',
      from: groupList(user.groups),
      to: groupList(user.groups.filter((group) => !joined.includes(group))),
    });
  if (back.comment !== undefined && user !== null && user.comment !== back.comment)
    changes.push({ field: 'comment', from: user.comment, to: back.comment });
  if (back.home !== undefined && user?.home !== back.home)
    changes.push({ field: 'home', from: user?.home ?? null, to: back.home });
  if (back.shell !== undefined && user?.shell !== back.shell)
    changes.push({ field: 'shell', from: user?.shell ?? null, to: back.shell });
  return changes;
}

/** Returns all fields to restore. */
export function backTo({ touched, whole }: Extract<UserBefore, { was: 'user' }>): typeof touched {
  if (whole === null) return touched;
  return {
    uid: whole.uid,
    primary_group: { name: whole.group, gid: whole.gid },
    home: whole.home,
    shell: whole.shell,
    additional_groups: whole.memberships,
    ...touched,
  };
}

/** Records account fields before they change. */
export function touch(
  before: Extract<UserBefore, { was: 'user' }>,
  { user, shadow, appended }: Pick<SeenUser, 'shadow' | 'appended'> & { user: User },
  changing: ReadonlySet<string>,
  memberships: () => { name: string; members: string[] }[],
): Extract<UserBefore, { was: 'user' }> {
  const touched = {
    ...before.touched,
    ...(shadow === null ? {} : touchSignIn(before.touched, shadow, changing)),
  };
  if (changing.has('groups_append')) {
    const original = (touched.additional_groups ?? []).map(({ name }) => name);
    const joins = joining({ user, appended }).filter((group) => !original.includes(group));
    touched.groups_append = [...new Set([...(touched.groups_append ?? []), ...joins])].sort();
  }
  if (changing.has('comment')) touched.comment ??= user.comment;
  if (changing.has('uid')) touched.uid ??= user.uid;
  if (changing.has('primary_group')) touched.primary_group ??= { name: user.group, gid: user.gid };
  if (changing.has('home')) touched.home ??= user.home;
  if (changing.has('shell')) touched.shell ??= user.shell;
  if (changing.has('additional_groups'))
    touched.additional_groups ??= memberships().filter(({ name }) => touched.groups_append?.includes(name) !== true);
  return { ...before, touched };
}
