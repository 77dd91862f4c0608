import { formatted, list } from '../field.ts';
import type { Check } from '../format.ts';
import type { CombinationFault } from '../kind.ts';

/** The access control list of a file or directory, with entries as setfacl(1) reads them. */

const tags: Readonly<Record<string, string>> = {
  u: 'user',
  user: 'user',
  g: 'group',
  group: 'group',
  o: 'other',
  other: 'other',
};
const entryPattern = /^(d:|default:)?([a-z]+):([^:]*):([^:]*)$/;
const namePattern = /^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,254}\$?$/;
const form = 'such as user:ann:rw-, group:ops:r-x, or default:group:ops:rwx';
/** Maximum number of entries. The kernel's limit depends on the file system: ext4 has room for about 500. */
const maxEntries = 200;

const permissionsOf = (text: string): string | null => {
  if (/^[0-7]$/.test(text)) return bits(Number(text));
  if (!/^[rwx-]{1,3}$/.test(text) || /([rwx]).*\1/.test(text)) return null;
  return `${text.includes('r') ? 'r' : '-'}${text.includes('w') ? 'w' : '-'}${text.includes('x') ? 'x' : '-'}`;
};
const bits = (number: number): string => `${number & 4 ? 'r' : '-'}${number & 2 ? 'w' : '-'}${number & 1 ? 'x' : '-'}`;

const entryOf =
  (types: 'access' | 'all'): Check =>
  (text) => {
    const [, isDefault, tag = '', name = '', permissions = ''] = entryPattern.exec(text) ?? [];
    if (tag === '') return `must be an entry of an ACL, ${form}`;
    if (tag === 'm' || tag === 'mask') return 'must not be the mask, which is computed from all entries';
    if (tags[tag] === undefined) return `must begin with user, group, or default, ${form}`;
    if (isDefault !== undefined && types === 'access')
      return 'must not be a default entry, which only directories have';
    if (name !== '' && (!namePattern.test(name) || tags[tag] === 'other'))
      return `must name a user or a group, ${form}`;
    if (name === '' && isDefault === undefined)
      return 'must name a user or a group: `mode` declares the permissions of the owner, the owning group, and others';
    return permissionsOf(permissions) === null ? 'must end with permissions such as rw- or r-x' : undefined;
  };

const about = (more: string) =>
  `All entries of the access control list besides those of mode, such as user:ann:rw-${more}; an empty list for none; mode then has the permissions of the owning group, not the mask`;

export const fileAcl = list(about(''), formatted('An entry', entryOf('access')), { atMost: maxEntries });
export const directoryAcl = list(
  about(', and default:group:ops:rwx for new files in the directory'),
  formatted('An entry', entryOf('all')),
  { atMost: maxEntries },
);

/**
 * Returns an entry in its canonical spelling, such as `user:ann:rw-` for `u:ann:6`; returns an entry with an error
 * unchanged.
 */
function canonicalEntry(text: string): string {
  const [, isDefault, tag = '', name = '', permissions = ''] = entryPattern.exec(text) ?? [];
  const canonical = permissionsOf(permissions);
  return tags[tag] === undefined || canonical === null
    ? text
    : `${isDefault === undefined ? '' : 'default:'}${tags[tag]}:${name}:${canonical}`;
}

export function normaliseAcl(body: Record<string, unknown>): void {
  if (Array.isArray(body.acl)) body.acl = body.acl.map((entry) => canonicalEntry(String(entry))).sort();
}

/** Returns an error for each entry whose account has an earlier entry. */
export function aclFaults({ acl }: Readonly<Record<string, unknown>>): CombinationFault[] {
  if (!Array.isArray(acl)) return [];
  const accounts = acl.map((entry) => canonicalEntry(String(entry)).replace(/:[^:]*$/, ''));
  return accounts.flatMap((account, index) =>
    account.includes('${{') || accounts.indexOf(account) === index
      ? []
      : [{ path: ['acl', String(index)], message: `${account} has two entries in \`acl\`` }],
  );
}
