import type { FieldChange } from '@muster/protocol';
import type { Accounts } from '../../host/accounts/accounts.ts';
import { HostFailure } from '../../host/failure.ts';
import { type Acl, formatBits, lacksAclPrograms, parseBits } from '../../host/files/acl-entries.ts';
import type { Inspected, Ownership } from '../../host/files/inspect.ts';
import type { Difference } from './provider.ts';

/**
 * Declares, observes, and restores the ACL of a file or directory. The permissions of an object with an ACL show its
 * mask in place of the permissions of the owning group. Here, `mode` always contains the permissions of the owning
 * group: the mask is computed from all entries, as setfacl does by default.
 */

/** A declared entry, with the number of its account. */
interface Entry {
  isDefault: boolean;
  tag: 'user' | 'group' | 'other';
  /** Empty for an entry of the owner, of the owning group, or of others. */
  name: string;
  /** Null if the account does not exist. */
  id: number | null;
  bits: number;
}

export interface SeenAcl {
  /** Null if the object is missing, or if the machine has no program to read it. */
  found: Acl | null;
  /** The entries of the object, with the names of accounts. */
  shown: string;
  /** The declared entries. */
  entries: Entry[];
  /** Whether the machine lacks the programs. */
  lacksPrograms?: true;
}

const pattern = /^(default:)?(user|group|other):([A-Za-z0-9_][A-Za-z0-9_.@-]{0,254}\$?|):([r-][w-][x-])$/;

/** @throws HostFailure if an entry is invalid, such as one from an orchestrator of another release */
export function checkAcl(acl: readonly string[] | null | undefined, object: 'file' | 'directory'): void {
  for (const entry of acl ?? []) {
    const [, isDefault, tag, name] = pattern.exec(entry) ?? [];
    if (tag === undefined || (isDefault === undefined ? name === '' : object === 'file') || (tag === 'other' && name))
      throw new HostFailure(`\`acl\` has an entry that this agent does not understand: ${entry.slice(0, 100)}`);
  }
}

/** @param acl entries in the form that `checkAcl` accepts */
export function seenAcl(acl: readonly string[], found: Acl | null, accounts: Accounts): SeenAcl {
  const entries = acl.map((text): Entry => {
    const [, isDefault, tag, name = '', bits = ''] = pattern.exec(text) ?? [];
    const id = name === '' ? null : tag === 'user' ? accounts.uid(name) : accounts.gid(name);
    return { isDefault: isDefault !== undefined, tag: tag as Entry['tag'], name, id, bits: parseBits(bits) };
  });
  const shown = (found?.entries ?? []).map((entry) => withName(entry, accounts)).join(', ');
  return { found, shown, entries, ...(lacksAclPrograms() ? { lacksPrograms: true } : {}) };
}

function withName(entry: string, accounts: Accounts): string {
  const parts = entry.split(':');
  const at = parts.length - 2;
  const id = parts[at] ?? '';
  if (id !== '') parts[at] = parts[at - 1] === 'user' ? accounts.userName(Number(id)) : accounts.groupName(Number(id));
  return parts.join(':');
}

/** Returns the inspected object with the permissions of its owning group in place of the mask of its ACL. */
export function withoutMask<F extends Inspected>(found: F, acl: SeenAcl | undefined): F {
  if (acl?.found == null || found.type === 'absent' || !acl.found.entries.some(isMask)) return found;
  return { ...found, mode: ((found as Ownership).mode & ~0o070) | (acl.found.group << 3) };
}

/** Returns the object with the permissions that its owning group has within the mask of its ACL. */
export function withinMask<F extends Ownership>(found: F, acl: SeenAcl | undefined): F {
  const mask = acl?.found?.entries.find(isMask);
  if (acl?.found == null || mask === undefined) return found;
  return { ...found, mode: (found.mode & ~0o070) | ((acl.found.group & parseBits(mask.slice(-3))) << 3) };
}

/** Reports whether a user or group, which may still have the file open, loses write permission. */
export function losesWriter(acl: SeenAcl): boolean {
  const writers = (entries: readonly string[]) =>
    entries.filter((entry) => /^(user|group):\d+:.w/.test(entry)).map((entry) => entry.slice(0, -4));
  const wanted = new Set(writers(wantedEntries(acl, 0)));
  return writers(acl.found?.entries ?? []).some((writer) => !wanted.has(writer));
}

const isMask = (entry: string): boolean => entry.startsWith('mask::');

/**
 * Returns the entries that the object must have in addition to those for its permissions, in the form of {@link Acl},
 * or with the names of accounts. An undeclared default entry keeps its value; a new default entry gets its value from
 * the permissions.
 * @param mode permissions of the object
 */
export function wantedEntries(
  { entries, found }: SeenAcl,
  mode: number,
  as: 'numbers' | 'names' = 'numbers',
): string[] {
  const texts: string[] = [];
  for (const prefix of ['', 'default:']) {
    const own = entries.filter(({ isDefault }) => isDefault === (prefix !== ''));
    if (own.length === 0) continue;
    const base = (tag: Entry['tag'], shift: number): number => {
      const current = found?.entries.find((entry) => prefix !== '' && entry.startsWith(`${prefix}${tag}::`));
      const declared = own.find((entry) => entry.tag === tag && entry.name === '');
      return declared?.bits ?? (current === undefined ? (mode >> shift) & 7 : parseBits(current.slice(-3)));
    };
    const named = own.filter(({ name }) => name !== '');
    const text = ({ tag, name, id, bits }: Entry): string =>
      `${prefix}${tag}:${as === 'names' ? name : id}:${formatBits(bits)}`;
    texts.push(...named.map(text));
    if (prefix !== '')
      texts.push(
        `${prefix}user::${formatBits(base('user', 6))}`,
        `${prefix}group::${formatBits(base('group', 3))}`,
        `${prefix}other::${formatBits(base('other', 0))}`,
      );
    if (named.length > 0)
      texts.push(`${prefix}mask::${formatBits(named.reduce((all, { bits }) => all | bits, base('group', 3)))}`);
  }
  return texts.sort();
}

const sameEntries = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((entry, index) => entry === other[index]);

const lacking = (path: string): string =>
  `\`acl\` of ${path} needs the programs getfacl and setfacl; install the package acl`;

/**
 * @param mode permissions that the object will have
 * @throws HostFailure in a drift check if the machine lacks the programs, and if two entries name the same account
 */
export function diffAcl(
  path: string,
  seen: SeenAcl | undefined,
  mode: number,
  isDrift: boolean,
): { changes: FieldChange[]; awaits: NonNullable<Difference['awaits']> } {
  if (seen === undefined) return { changes: [], awaits: [] };
  const awaits: NonNullable<Difference['awaits']> = [];
  if (seen.lacksPrograms === true) {
    if (isDrift) throw new HostFailure(lacking(path));
    awaits.push({ kind: 'programs', message: lacking(path) });
  }
  for (const { tag, name, id } of seen.entries)
    if (name !== '' && id === null) awaits.push({ kind: 'accounts', message: `there is no ${tag} ${name}` });
  refuseTwoNames(path, seen.entries);
  const isSame = awaits.length === 0 && sameEntries(wantedEntries(seen, mode), seen.found?.entries ?? []);
  if (isSame) return { changes: [], awaits: [] };
  const to = wantedEntries(seen, mode, 'names').join(', ');
  return { changes: [{ field: 'acl', from: shownAcl(seen.shown), to: shownAcl(to) }], awaits };
}

/** @throws HostFailure if two entries name the same account, for example once by name and once by number */
function refuseTwoNames(path: string, entries: readonly Entry[]): void {
  const names = new Map<string, string>();
  for (const { isDefault, tag, name, id } of entries) {
    if (id === null) continue;
    const key = `${isDefault} ${tag} ${id}`;
    const other = names.get(key);
    if (other !== undefined)
      throw new HostFailure(`\`acl\` of ${path} has two entries for one ${tag}: ${other} and ${name}; remove one`);
    names.set(key, name);
  }
}

const maxShown = 2000;
const shownAcl = (text: string): string | null =>
  text === '' ? null : text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;

/**
 * Returns the permissions that an object would have if others also had the permissions of every named entry. This
 * decides whether a change exposes the object.
 */
export function widened(target: Ownership, entries: readonly string[]): Ownership {
  const granted = entries
    .filter((entry) => !entry.startsWith('default:') && !isMask(entry))
    .reduce((all, entry) => all | parseBits(entry.slice(-3)), 0);
  return { ...target, mode: target.mode | granted };
}

/**
 * Returns the entries that a removal restores, and the resulting permissions. The owning group gets no more permissions
 * than it had.
 */
export const restoredAcl = (before: Acl, target: Ownership): { mode: number; entries: string[] } => ({
  mode: before.entries.some(isMask) ? target.mode & ~(0o070 & ~(before.group << 3)) : target.mode,
  entries: before.entries,
});

/**
 * @param seen the ACL of the existing object
 * @throws HostFailure if the machine lacks the programs
 */
export function diffAclRemoval(path: string, before: Acl, seen: SeenAcl | undefined): FieldChange[] {
  if (seen?.lacksPrograms === true) throw new HostFailure(lacking(path));
  if (sameEntries(before.entries, seen?.found?.entries ?? [])) return [];
  return [{ field: 'acl', from: shownAcl(seen?.shown ?? ''), to: shownAcl(before.entries.join(', ')) }];
}
