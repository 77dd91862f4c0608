import { readFileSync } from 'node:fs';
import { errnoOf, hostFailure } from '../failure.ts';

/** The lines of /etc/passwd and /etc/group in full, and what belongs to an account beside them. */

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
  /** In the order they are written in. */
  members: string[];
}

export interface AccountFiles {
  users: ReadonlyMap<string, UserEntry>;
  groups: ReadonlyMap<string, GroupEntry>;
  groupByGid(gid: number): GroupEntry | null;
  /** Names of the groups that a user is a member of beside the primary one, sorted. */
  groupsOf(user: string): string[];
  /** Users that have this group for their primary one. */
  usersWithGroup(gid: number): string[];
  /** Where accounts may come from beside the files, as /etc/nsswitch.conf has it. */
  otherSources: readonly string[];
}

/**
 * Reads who there is.
 * @param etc where the files are, for tests
 * @throws HostFailure when they cannot be read: that there are no accounts is never taken for granted
 */
export function readAccountFiles(etc = '/etc'): AccountFiles {
  const users = new Map<string, UserEntry>();
  for (const [name, , uid, gid, comment, home, shell] of linesOf(`${etc}/passwd`)) {
    // The first entry counts, as it does for the C library.
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
  return {
    users,
    groups,
    groupByGid: (gid) => byGid.get(gid) ?? null,
    groupsOf: (user) => [...new Set(memberOf.get(user) ?? [])].sort(),
    usersWithGroup: (gid) => [...users.values()].filter((user) => user.gid === gid).map(({ name }) => name),
    otherSources: otherSources(`${etc}/nsswitch.conf`),
  };
}

/** What a removed account needs to come back with, beside its line in /etc/passwd. All of it is for root only. */
export type AccountSecrets = {
  /** The hash, or what stands in its place; null: there is no line. */
  password: string | null;
  /** Days since 1970 of the last change, and the five ages that follow it, as they are written. */
  ageing: string[];
  subordinateUids: Range[];
  subordinateGids: Range[];
};

export type Range = {
  first: number;
  count: number;
};

/** @throws HostFailure when /etc/shadow cannot be read */
export function readAccountSecrets(name: string, etc = '/etc'): AccountSecrets {
  const line = linesOf(`${etc}/shadow`).find(([user]) => user === name);
  return {
    password: line?.[1] ?? null,
    ageing: line?.slice(2, 8) ?? [],
    subordinateUids: subordinateIds(`${etc}/subuid`, name),
    subordinateGids: subordinateIds(`${etc}/subgid`, name),
  };
}

/** What a removed group needs to come back with. */
export type GroupSecrets = {
  password: string | null;
  administrators: string[];
};

/** @throws HostFailure when /etc/gshadow cannot be read */
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

/** Lines of NIS, such as `+@staff`, and those without a number are nobody's. */
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

/** Those that are in the files, or only give names to what is there anyway. */
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
