import { HostFailure } from '../../host/failure.ts';

/** Parses the member lists that tar and unzip print, and refuses archives that are not safe to unpack. */

export interface Member {
  type: 'file' | 'directory' | 'symlink' | 'hard link' | 'other';
  name: string;
  /** Bytes. */
  size: number;
  /** Target of a link; null if the list does not contain it. */
  target: string | null;
}

/** Maximum number of members. */
const maxMembers = 65_536;
/** Maximum total size of all members, in bytes. */
export const maxUnpacked = 8 * 1024 ** 3;
/** Maximum compression ratio of an archive that unpacks to more than `freeBytes`. */
const maxRatio = 200;
const freeBytes = 1024 ** 3;
/** Maximum size of a member list, in bytes. */
export const maxListBytes = 64 * 1024 * 1024;

const types: Readonly<Record<string, Member['type']>> = {
  '-': 'file',
  d: 'directory',
  l: 'symlink',
  h: 'hard link',
};

/** A line of output from `tar --list --verbose --full-time --quoting-style=c`. */
const tarLine = /^(.)\S{9}\S? +\S+ +(\d+|\d+,\d+) \S+ \S+ "((?:[^"\\]|\\.)*)"(?: (?:->|link to) "((?:[^"\\]|\\.)*)")?$/;
/** A line of output from `unzip -Z -s -T`. */
const zipLine = /^(.)\S{6,10} +\d+\.\d+ \S+ +(\d+) \S+ \S+ \d{8}\.\d{6} (.+)$/;
const zipEnd = /^(\d+) files?, /;

/** @param list output of `tar --list --verbose --full-time --quoting-style=c` */
export function tarMembers(list: string): Member[] {
  return linesOf(list).map((line) => {
    const [, type = '', size = '', name, target] = tarLine.exec(line) ?? [];
    if (name === undefined) throw new HostFailure('tar lists a member that the agent cannot read');
    return {
      type: types[type] ?? 'other',
      name: unquoted(name),
      size: Number(/^\d+$/.test(size) ? size : 0),
      target: target === undefined ? null : unquoted(target),
    };
  });
}

/** @param list output of `unzip -Z -s -T` */
export function zipMembers(list: string): Member[] {
  const lines = linesOf(list);
  const members = lines.flatMap((line): Member[] => {
    const [, type = '', size = '', name] = zipLine.exec(line) ?? [];
    return name === undefined ? [] : [{ type: types[type] ?? 'other', name, size: Number(size), target: null }];
  });
  if (Number(zipEnd.exec(lines.at(-1) ?? '')?.[1]) !== members.length)
    throw new HostFailure('unzip lists a member that the agent cannot read');
  return members.map((member) =>
    member.type === 'file' && member.name.endsWith('/') ? { ...member, type: 'directory' } : member,
  );
}

function linesOf(list: string): string[] {
  const lines = list.split('\n').filter((line) => line !== '');
  // unzip also prints two other lines.
  if (lines.length > maxMembers + 3) throw tooMany();
  return lines;
}

const tooMany = (): HostFailure => new HostFailure(`the archive has more than ${maxMembers} members`);

const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** Decodes a name that tar quoted in C style, with octal escapes for non-printable bytes. */
function unquoted(text: string): string {
  const bytes = text.replace(/\\([0-7]{3}|.)/g, (_, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (escapes[code] ?? code),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

export interface Layout {
  /** Number of directories to remove at the start of each name. */
  strip: number;
  exclude: readonly string[];
}

/**
 * Refuses an archive that could write outside its directory, fill the disk, or create objects other than files,
 * directories, and links.
 * @param compressed size of the archive in bytes
 * @returns the total and the largest size of the members, in bytes
 * @throws HostFailure
 */
export function checkMembers(
  members: readonly Member[],
  { strip, exclude }: Layout,
  compressed: number,
): { total: number; largest: number } {
  if (members.length > maxMembers) throw tooMany();
  const symlinks = new Set<string>();
  const files = new Set<string>();
  const paths: { member: Member; path: string }[] = [];
  let total = 0;
  let largest = 0;
  for (const member of members) {
    total += member.size;
    largest = Math.max(largest, member.size);
    const parts = partsOf(member.name);
    const path = parts.slice(strip).join('/');
    if (path === '' || isExcluded(path, exclude)) {
      if (member.type === 'symlink') symlinks.add(path);
      continue;
    }
    if (member.type === 'other')
      throw new HostFailure(`the member ${shown(member.name)} is neither a file, a directory, nor a link`);
    if (member.type === 'symlink') symlinks.add(path);
    if (member.type === 'file') files.add(path);
    paths.push({ member, path });
  }
  if (total > maxUnpacked)
    throw new HostFailure(`the archive unpacks to ${total} bytes; the maximum is ${maxUnpacked / 1024 ** 3} GiB`);
  if (total > freeBytes && total > compressed * maxRatio)
    throw new HostFailure(`the archive unpacks to ${total} bytes, more than ${maxRatio} times its size`);
  if (paths.length === 0) throw new HostFailure('`strip` and `exclude` leave no member of the archive');
  for (const { member, path } of paths) {
    const above = ancestorsOf(path).find((ancestor) => symlinks.has(ancestor));
    if (above !== undefined)
      throw new HostFailure(`the member ${shown(member.name)} is below the symbolic link ${shown(above)}`);
    if (member.type === 'symlink' && member.target !== null) checkSymlink(path, member.target);
    if (member.type === 'hard link') {
      const target = partsOf(member.target ?? '')
        .slice(strip)
        .join('/');
      if (!files.has(target))
        throw new HostFailure(
          `the member ${shown(member.name)} is a hard link, but its target is not a member of the archive`,
        );
    }
  }
  return { total, largest };
}

function partsOf(name: string): string[] {
  if (name.startsWith('/')) throw new HostFailure(`the member ${shown(name)} has an absolute path`);
  if (name.length > 4096) throw new HostFailure('the archive has a member with a name of more than 4096 characters');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw new HostFailure(`the member ${shown(name)} leaves the directory with ".."`);
  return parts;
}

/**
 * Refuses a symbolic link that leads out of the directory. `..` is allowed only at the start: after the name of another
 * link, it could lead anywhere.
 * @throws HostFailure
 */
export function checkSymlink(path: string, target: string): void {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const up = parts.findIndex((part) => part !== '..');
  const ups = up === -1 ? parts.length : up;
  const isInside = !target.startsWith('/') && ups < path.split('/').length && !parts.slice(ups).includes('..');
  if (!isInside)
    throw new HostFailure(`the symbolic link ${shown(path)} leads out of the archive, to ${shown(target)}`);
}

const ancestorsOf = (path: string): string[] => {
  const ancestors: string[] = [];
  for (let end = path.indexOf('/'); end !== -1; end = path.indexOf('/', end + 1)) ancestors.push(path.slice(0, end));
  return ancestors;
};

const shown = (text: string): string => JSON.stringify(text.length > 200 ? `${text.slice(0, 199)}…` : text);

/** Reports whether a pattern matches a path or a directory above it. */
export const isExcluded = (path: string, patterns: readonly string[]): boolean =>
  patterns.length > 0 &&
  [path, ...ancestorsOf(path)].some((candidate) => patterns.some((pattern) => matches(candidate, pattern)));

/** Matches `*` with any characters and `?` with one, in time that is bounded by the product of both lengths. */
function matches(text: string, pattern: string): boolean {
  let at = 0;
  let star = -1;
  let retry = 0;
  let position = 0;
  while (position < text.length) {
    if (pattern[at] === '*') {
      star = at++;
      retry = position;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[position])) {
      at++;
      position++;
    } else if (star !== -1) {
      at = star + 1;
      position = ++retry;
    } else return false;
  }
  while (pattern[at] === '*') at++;
  return at === pattern.length;
}
