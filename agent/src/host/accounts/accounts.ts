import { readFileSync } from 'node:fs';
import { HostFailure } from '../failure.ts';

/** User and group names and IDs from /etc/passwd and /etc/group. */
export interface Accounts {
  /** Returns a user's UID, or null if the user does not exist. A name that consists of digits is itself the UID. */
  uid(name: string): number | null;
  gid(name: string): number | null;
  /** Returns the name for an ID, or the ID itself if it has no name. */
  userName(uid: number): string;
  groupName(gid: number): string;
}

/**
 * Reads each file on first use and caches it. Create a new reader after the files may have changed.
 * @param etc the directory with the files, for tests
 */
export function readAccounts(etc = '/etc'): Accounts {
  let users: Table | null = null;
  let groups: Table | null = null;
  const userTable = () => (users ??= readTable(`${etc}/passwd`));
  const groupTable = () => (groups ??= readTable(`${etc}/group`));
  return {
    uid: (name) => byName(userTable, name),
    gid: (name) => byName(groupTable, name),
    userName: (uid) => userTable().names.get(uid) ?? String(uid),
    groupName: (gid) => groupTable().names.get(gid) ?? String(gid),
  };
}

interface Table {
  ids: Map<string, number>;
  names: Map<number, string>;
}

const largestId = 0xffff_fffe;

function byName(table: () => Table, name: string): number | null {
  if (!/^\d+$/.test(name)) return table().ids.get(name) ?? null;
  const id = Number(name);
  if (id > largestId)
    throw new HostFailure(`${name} is too large for a user or group number; the maximum is ${largestId}`);
  return id;
}

function readTable(file: string): Table {
  const table: Table = { ids: new Map(), names: new Map() };
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return table;
  }
  for (const line of text.split('\n')) {
    const [name, , id] = line.split(':');
    if (name === undefined || name === '' || id === undefined || !/^\d+$/.test(id)) continue;
    // Uses the first entry, as the C library does.
    if (!table.ids.has(name)) table.ids.set(name, Number(id));
    if (!table.names.has(Number(id))) table.names.set(Number(id), name);
  }
  return table;
}
