import type { FieldChange } from '@muster/protocol';
import type { ResourceBodies } from '@muster/protocol/module';
import { runAccountTool, type ToolContext } from '../../host/accounts/account-tools.ts';

/** The members of a group, as `members` or `members_append` declares them. */

type Body = ResourceBodies['group-unix'];

/** Record of the members before the agent changes them. */
export type MembersBefore = {
  /** Users who joined because of the declaration. */
  added?: string[];
  /** All members before `members` first changed them, except those in `added`. */
  members?: string[];
};

/** Returns the declared members, or null if they are not declared. Current members keep their order. */
function wantedMembers({ members, members_append }: Body, now: readonly string[]): string[] | null {
  const declared = members ?? members_append;
  if (declared == null) return null;
  const stay = members == null ? now : now.filter((member) => members.includes(member));
  return [...new Set([...stay, ...declared])];
}

const listed = (members: readonly string[]): string => [...members].sort().join(',');

/** @param now null if the group does not exist */
export function memberChanges(body: Body, now: readonly string[] | null): FieldChange[] {
  const wanted = wantedMembers(body, now ?? []);
  if (wanted === null || listed(wanted) === listed(now ?? [])) return [];
  const field = body.members == null ? 'members_append' : 'members';
  return [{ field, from: now === null ? null : listed(now), to: listed(wanted) }];
}

/** Records the members that the declaration is about to change. */
export function rememberMembers(body: Body, now: readonly string[], before: MembersBefore): MembersBefore {
  const wanted = wantedMembers(body, now);
  if (wanted === null) return {};
  const joins = wanted.filter((member) => !now.includes(member) && before.members?.includes(member) !== true);
  const added = [...new Set([...(before.added ?? []), ...joins])];
  const leaves = now.some((member) => !wanted.includes(member));
  const members = before.members ?? (leaves ? now.filter((member) => !added.includes(member)) : undefined);
  return { added, ...(members === undefined ? {} : { members }) };
}

/**
 * Returns the members to restore: the recorded list if the declaration removed members; otherwise, the current members
 * except those that the declaration added.
 */
export const membersBefore = ({ added, members }: MembersBefore, now: readonly string[]): string[] =>
  members ?? now.filter((member) => added?.includes(member) !== true);

/** Applies the declaration to an existing group. */
export async function applyMembers(body: Body, now: readonly string[], context: ToolContext): Promise<void> {
  const wanted = wantedMembers(body, now);
  if (wanted !== null) await setMembers(body.name, now, wanted, context);
}

export async function setMembers(
  group: string,
  now: readonly string[],
  wanted: readonly string[],
  context: ToolContext,
): Promise<void> {
  if (now.join() !== wanted.join()) await runAccountTool('gpasswd', ['-M', wanted.join(','), group], context);
}
