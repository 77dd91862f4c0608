import { readFileSync } from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';

/** Reads complete user and group entries, with their passwords and subordinate IDs, from the files in /etc. */

export interface UserEntry {
  name: string;
  uid: number;
  gid: number;
  comment: string;
  home: string;
  shell: string;
}

export interface GroupEntry {
  name: string;
  gid: number;
  /** Member names in file order. */
  members: string[];
}

export interface AccountFiles {
  users: ReadonlyMap<string, UserEntry>;
  groups: ReadonlyMap<string, GroupEntry>;
  groupByGid(gid: number): GroupEntry | null;
  /** Returns the sorted names of a user's supplementary groups. */
  groupsOf(user: string): string[];
  /** Returns the names of the users whose primary group has this GID. */
  usersWithGroup(gid: number): string[];
  /**
   * Returns an account's password and aging data. Reads /etc/shadow on the first call.
   * @throws HostFailure if /etc/shadow cannot be read
   */
  shadowOf(user: string): ShadowEntry;
  /** Account sources other than files, from /etc/nsswitch.conf. */
  otherSources: readonly string[];
}

/**
 * Reads all accounts.
 * @param etc the directory with the files, for tests
 * @throws HostFailure if a file cannot be read, because an empty result would mean that there are no accounts
 */
export function readAccountFiles(etc = '/etc'): AccountFiles {
  const users = new Map<string, UserEntry>();
  for (const [name, , uid, gid, comment, home, shell] of linesOf(`${etc}/passwd`)) {
    // Uses the first entry, as the C library does.
    if (!isEntry(name, uid) || !isNumber(gid) || users.has(name)) continue;
    users.set(name, {
      name,
      uid: Number(uid),
      gid: Number(gid),
      comment: comment ?? '',
      home: home ?? '',
      shell: shell ?? '',
    });
  }
  const groups = new Map<string, GroupEntry>();
  const byGid = new Map<number, GroupEntry>();
  const memberOf = new Map<string, string[]>();
  for (const [name, , gid, members] of linesOf(`${etc}/group`)) {
    if (!isEntry(name, gid) || groups.has(name)) continue;
    const group = { name, gid: Number(gid), members: (members ?? '').split(',').filter((member) => member !== '') };
    groups.set(name, group);
    if (!byGid.has(group.gid)) byGid.set(group.gid, group);
    for (const member of group.members) {
      const all = memberOf.get(member);
      if (all === undefined) memberOf.set(member, [name]);
      else all.push(name);
    }
  }
  let shadow: Map<string, ShadowEntry> | null = null;
  return {
    users,
    groups,
    shadowOf(user) {
      shadow ??= readShadow(etc);
      return shadow.get(user) ?? noShadow;
    },
    groupByGid: (gid) => byGid.get(gid) ?? null,
    groupsOf: (user) => [...new Set(memberOf.get(user) ?? [])].sort(),
    usersWithGroup: (gid) => [...users.values()].filter((user) => user.gid === gid).map(({ name }) => name),
    otherSources: otherSources(`${etc}/nsswitch.conf`),
  };
}

/** An account's line in /etc/shadow, which only root can read. */
export type ShadowEntry = {
  /** The password field: a hash or a placeholder. Null if the account has no line in /etc/shadow. */
  password: string | null;
  /** The raw fields 3 to 8 of /etc/shadow: day of the last password change (since 1970) and the five aging fields. */
  ageing: string[];
};

const noShadow: ShadowEntry = { password: null, ageing: [] };

function readShadow(etc: string): Map<string, ShadowEntry> {
  const entries = new Map<string, ShadowEntry>();
  for (const [name = '', password = '', ...rest] of linesOf(`${etc}/shadow`))
    if (!entries.has(name)) entries.set(name, { password, ageing: rest.slice(0, 6) });
  return entries;
}

/** Data that restores a removed account, in addition to its line in /etc/passwd. */
export type AccountSecrets = ShadowEntry & {
  subordinateUids: Range[];
  subordinateGids: Range[];
};

export type Range = {
  first: number;
  count: number;
};

/**
 * Reads the data of one account. Fields are empty if the account has no lines.
 * @throws HostFailure if /etc/shadow cannot be read
 */
export function readAccountSecrets(name: string, etc = '/etc'): AccountSecrets {
  return {
    ...(readShadow(etc).get(name) ?? noShadow),
    subordinateUids: subordinateIds(`${etc}/subuid`, name),
    subordinateGids: subordinateIds(`${etc}/subgid`, name),
  };
}

/** Data for restoring a removed group, in addition to its line in /etc/group. */
export type GroupSecrets = {
  password: string | null;
  administrators: string[];
};

/**
 * Reads one group's data.
 * @throws HostFailure if /etc/gshadow cannot be read
 */
export function readGroupSecrets(name: string, etc = '/etc'): GroupSecrets {
  const line = linesOf(`${etc}/gshadow`).find(([group]) => group === name);
  return {
    password: line?.[1] ?? null,
    administrators: (line?.[2] ?? '').split(',').filter((administrator) => administrator !== ''),
  };
}

const subordinateIds = (file: string, name: string): Range[] =>
  linesOf(file)
    .filter(([user, first, count]) => user === name && isNumber(first) && isNumber(count))
    .map(([, first, count]) => ({ first: Number(first), count: Number(count) }));

const isNumber = (text: string | undefined): text is string => text !== undefined && /^\d+$/.test(text);

/** Reports whether a line is an entry, unlike NIS lines, such as `+@staff`, and lines without an ID. */
const isEntry = (name: string | undefined, id: string | undefined): name is string =>
  name !== undefined && name !== '' && !/^[+-]/.test(name) && isNumber(id);

function linesOf(file: string): string[][] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw hostFailure(error, `read ${file}`);
  }
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(':'));
}

/** Name services that read the local files, or that only provide the dynamic accounts of systemd and its containers. */
const fileSources = new Set(['files', 'compat', 'systemd', 'mymachines', 'altfiles']);

function otherSources(file: string): string[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  const line = /^\s*passwd\s*:(.*)$/m.exec(text)?.[1] ?? '';
  return line
    .replace(/#.*$/, '')
    .replace(/\[[^\]]*\]/g, ' ')
    .split(/\s+/)
    .filter((source) => source !== '' && !fileSources.has(source));
}
