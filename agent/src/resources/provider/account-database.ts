import { type AccountFiles, readAccountFiles } from '../../host/accounts/account-files.ts';
import type { Database } from './provider.ts';

/** /etc/passwd and /etc/group: read once, however many accounts are declared. */
export const accountDatabase: Database<AccountFiles> = { name: 'accounts', read: () => readAccountFiles() };

/** A group as it is named in a module: digits are its number, as they are to the shadow tools. */
export function findGroup(files: AccountFiles, asked: string): { name: string; gid: number } | null {
  const group = /^\d+$/.test(asked) ? files.groupByGid(Number(asked)) : (files.groups.get(asked) ?? null);
  return group === null ? null : { name: group.name, gid: group.gid };
}
