import type { Ownership } from './inspect.ts';
import type { OpenDirectory } from './path-walk.ts';

/** Pure functions that decide how the agent sets owners, groups, permissions, and ACLs. */

export type OwnedObject =
  | { type: 'directory' | 'symlink' }
  /** `edited`: the agent changes part of the content. `written`: the agent replaces all content. */
  | { type: 'file'; content: 'kept' | 'edited' | 'written' };

/**
 * Ownership to set. An absent field keeps its current value. `uid` or `gid` is null if the account does not exist yet.
 */
export interface RequestedOwnership {
  uid?: number | null;
  gid?: number | null;
  mode?: number;
}

export const setIdBits = 0o6000;
export const sharedWriteBits = 0o022;

/**
 * Decides the resulting owner, group, and permissions, for all kinds. The owner of a file can put a program into it and
 * set its set-ID bits. Unless `mode` declares such a bit, it is therefore cleared when the owner or group changes, or
 * when another user provides new content. If the agent replaces all content of another user's file, users who could
 * write to the file lose that access.
 * @param found null if the object is created
 * @param created defaults for a new object; its owner is the agent's user
 */
export function decideOwnership(
  requested: RequestedOwnership,
  found: Ownership | null,
  object: OwnedObject,
  created: Ownership,
): Ownership {
  const base = found ?? created;
  const { uid = base.uid, gid = base.gid } = requested;
  const owner = { uid: uid ?? base.uid, gid: gid ?? base.gid };
  if (requested.mode !== undefined) return { ...owner, mode: requested.mode };
  if (found === null || object.type !== 'file') return { ...owner, mode: base.mode };
  const isOthers = found.uid !== created.uid;
  const ownerChanges = uid !== found.uid || gid !== found.gid;
  const lost =
    (ownerChanges || (isOthers && object.content !== 'kept') ? setIdBits : 0) |
    (isOthers && object.content === 'written' ? sharedWriteBits : 0);
  return { ...owner, mode: base.mode & ~lost };
}

/**
 * Reports whether a change would expose content that only the agent's user could read. Another user may have moved the
 * object to its path: a user's directory may contain a private directory of root.
 * @param found a `size` of 0 means that the object is empty
 */
export function exposes(
  found: Ownership & { movable?: true | undefined; size?: number },
  target: Ownership,
  type: 'file' | 'directory',
): boolean {
  if (found.movable !== true || found.uid !== asCreated(0).uid || found.size === 0) return false;
  const bits = type === 'file' ? 4 : 5;
  const hidden = bits & ~found.mode;
  if (target.uid !== found.uid) return hidden !== 0;
  const hiddenFromGroup = found.gid === target.gid ? hidden & ~(found.mode >> 3) : hidden;
  return (target.mode & hidden) !== 0 || ((target.mode >> 3) & hiddenFromGroup) !== 0;
}

/**
 * Reports whether a new object may inherit the default ACL of its directory. This is the case if root set the ACL, or
 * if the object belongs to the user who set it. Only the owner of a directory can set its default ACL, and directories
 * that others create in it inherit the ACL.
 */
export const mayInheritAcl = (
  parent: Pick<OpenDirectory, 'trusted' | 'uid'>,
  { uid }: Pick<Ownership, 'uid'>,
): boolean => parent.trusted || (uid === parent.uid && uid !== asCreated(0).uid);

/** Reports whether to remove the ACLs of an object, because the previous owner could have used one to keep access. */
export const losesAcls = (found: Ownership, target: Ownership): boolean =>
  found.uid !== target.uid && found.uid !== asCreated(0).uid;

/**
 * Reports whether an ACL could grant more than the permissions for others. The group permissions limit the ACL's
 * entries.
 */
export const isWidenedByAcl = ({ mode }: Ownership): boolean => ((mode >> 3) & ~mode & 7) !== 0;

/** Returns the defaults of a new object, which belongs to the agent's user. */
export const asCreated = (mode: number): Ownership => ({
  uid: process.geteuid?.() ?? 0,
  gid: process.getegid?.() ?? 0,
  mode,
});
