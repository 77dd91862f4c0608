import { type AccountFiles, readAccountFiles } from '../../host/accounts/account-files.ts';
import type { Database } from './provider.ts';

/** The entries of /etc/passwd and /etc/group, read once per operation. */
export const accountDatabase: Database<AccountFiles> = { name: 'accounts', read: () => readAccountFiles() };

/** Finds a group by its name in a module. A name that consists of digits is a GID, as in the shadow tools. */
export function findGroup(files: AccountFiles, nameOrNumber: string): { name: string; gid: number } | null {
  const group = /^\d+$/.test(nameOrNumber)
    ? files.groupByGid(Number(nameOrNumber))
    : (files.groups.get(nameOrNumber) ?? null);
  return group === null ? null : { name: group.name, gid: group.gid };
}
