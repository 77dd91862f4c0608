import { blindSpot, bornAt, digestAt, type Footprint, takeFootprint } from '../../host/files/footprint.ts';
import { type DpkgDatabase, type DpkgPackage, dpkgChangedAt, pathsOf, unpackedAt } from '../../host/packages/dpkg.ts';
import { exists, readText } from '../../host/read-system.ts';
import type { CopyReference, Database, Machine } from '../provider/provider.ts';
import { dpkgDatabase, isThere } from './seen.ts';

/**
 * What came with packages that were not there before: which packages, and which paths where configuration and data
 * stand. Removal needs it to tell what nobody would miss.
 */

/** What was there before packages came. */
interface Ground {
  /** Packages that dpkg knew in any state, by `name:architecture`. */
  packages: string[];
  /** Null: more than could be looked at. */
  paths: [string, string][] | null;
}

export interface Trace {
  /** Packages that were not known in any state before. */
  packages: string[];
  /** Why nothing is known of what appeared; the rest is empty then. */
  unknown: string | null;
  paths: TracedPath[];
  /** By package: what its removal with everything of it would take away although it was there before. */
  endangered: Record<string, string>;
}

export interface TracedPath {
  path: string;
  stamp: string;
  /** What a small file held; null of everything else. */
  digest: string | null;
  /** Positions in `packages` of those that have it in their list or name it in their scripts. Empty: nobody knows. */
  of: number[];
  /** Whether their list or scripts name the path itself, and not only a directory above it. */
  named?: boolean;
}

/** Larger than any of them is. Bytes. */
const maxRecord = 64 * 1024 * 1024;

/** What is there now, kept once an operation for all packages that are about to come. */
export const ground: Database<CopyReference> = {
  name: 'ground of packages',
  async read(machine) {
    const [{ packages }, paths] = [await machine.database(dpkgDatabase), await takeFootprint()];
    const known = [...packages].filter(([, { state }]) => state !== 'not-installed').map(([key]) => key);
    return keep({ packages: known, paths: paths === null ? null : [...paths] } satisfies Ground, machine);
  },
};

const keep = (record: Ground | Trace, machine: Machine): Promise<CopyReference> =>
  machine.copies.keep(Buffer.from(JSON.stringify(record)));

function readRecord<T extends Ground | Trace>(reference: CopyReference, machine: Machine): T | null {
  const bytes = machine.copies.read(reference, maxRecord);
  return bytes === null ? null : (JSON.parse(bytes.toString('utf8')) as T);
}

export const readTrace = (reference: CopyReference, machine: Machine): Trace | null =>
  readRecord<Trace>(reference, machine);

/** What came since the ground was looked at, the same for all packages of one transaction. */
export const traceSince = (from: CopyReference): Database<{ reference: CopyReference; packages: string[] }> => ({
  name: `trace of packages since ${from.sha256}`,
  async read(machine) {
    const before = readRecord<Ground>(from, machine);
    const trace = traceOf(before, await machine.database(dpkgDatabase), await takeFootprint());
    return { reference: await keep(trace, machine), packages: trace.packages };
  },
});

function traceOf(before: Ground | null, database: DpkgDatabase, now: Footprint | null): Trace {
  const known = new Set(before?.packages);
  const packages = [...database.packages]
    .filter(([key, { state }]) => state !== 'not-installed' && !known.has(key))
    .map(([key]) => key);
  const blank = { packages: before === null ? [] : packages, paths: [], endangered: {} };
  if (before === null) return { ...blank, unknown: 'what was recorded at its installation is gone' };
  if (before.paths === null || now === null)
    return { ...blank, unknown: 'there are too many files on this machine to tell what came with it' };
  const there = new Map(before.paths);
  const came = packages.map((key) => database.packages.get(key) as DpkgPackage);
  const claims = came.map(claimsOf);
  const unpacked = came.map(unpackedAt);
  const finished = dpkgChangedAt() + settlingMs;
  const paths: TracedPath[] = [];
  const byPath = new Map<string, TracedPath>();
  const foreign = new Set<string>();
  const above = (path: string): TracedPath | undefined => byPath.get(path.slice(0, path.lastIndexOf('/')));
  // Shorter ones first: what is in a directory that came is of whoever the directory is.
  for (const [path, stamp] of [...now].filter(([path]) => !there.has(path)).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const own = packages.flatMap((_, i) => (claims[i]?.has(path) ? [i] : []));
    const named = own.length > 0;
    const of = named ? own : [...(above(path)?.of ?? [])];
    const span = { from: Math.min(...of.map((position) => unpacked[position] ?? 0)), to: finished };
    if (!named && (foreign.has(path.slice(0, path.lastIndexOf('/'))) || !mayHaveBrought(path, stamp, of, span))) {
      foreign.add(path);
      continue;
    }
    const entry = { path, stamp, digest: digestAt(path, 'sha1'), of, named };
    byPath.set(path, entry);
    paths.push(entry);
  }
  // A directory that nobody knows is of those whose things are in it.
  const unknown = new Set(paths.filter(({ of }) => of.length === 0));
  for (const { path, of } of [...paths].reverse()) {
    const parent = above(path);
    if (parent !== undefined && unknown.has(parent)) parent.of = [...new Set([...parent.of, ...of])];
  }
  const endangered: Record<string, string> = {};
  const filled = new Set([...there.keys()].map((path) => path.slice(0, path.lastIndexOf('/'))));
  packages.forEach((key, i) => {
    for (const path of claims[i]?.removed ?? []) {
      const stamp = there.get(path);
      if (stamp !== undefined && (stamp !== 'd' || filled.has(path)) && !isShared(path)) endangered[key] ??= path;
    }
  });
  return { packages, unknown: null, paths, endangered };
}

/** What a package started may still write right after. Milliseconds. */
const settlingMs = 2000;
/** Where people put things themselves. */
const placesOfPeople = /^\/(etc|srv|opt|usr\/local|var\/www)\//;

/**
 * Whether something that appeared can have come with packages that do not name it. Others work on a machine at the same
 * time, and an agent that was killed may look at what came only days later.
 */
export function mayHaveBrought(
  path: string,
  stamp: string,
  of: readonly number[],
  { from, to }: { from: number; to: number },
): boolean {
  const born = bornAt(path) ?? 0;
  if (born > to) return false;
  if (of.length === 0) return true;
  return born >= from && !(stamp.startsWith('f ') && placesOfPeople.test(path));
}

interface Claims {
  has(path: string): boolean;
  /** All of those paths, but for what is nobody's. */
  all: ReadonlySet<string>;
  /** Paths that the script names which runs when everything of it is removed. */
  removed: string[];
}

/** Paths that a script can be about, as they stand in its text. */
const pathInText = /\/(?:etc|var|opt|srv|usr\/local)\/[A-Za-z0-9._+@%:/-]*[A-Za-z0-9_+@%-]/g;

function claimsOf({ name, architecture, state }: DpkgPackage): Claims {
  const info = (what: string): string =>
    readText(`/var/lib/dpkg/info/${name}:${architecture}.${what}`) ??
    readText(`/var/lib/dpkg/info/${name}.${what}`) ??
    '';
  const listed = new Set(isThere(state) ? pathsOf({ name, architecture }) : []);
  const removed = [...new Set(info('postrm').match(pathInText) ?? [])];
  // What its own scripts name is its own too, if it came with it.
  const scripts = [
    ...removed,
    ...(info('preinst').match(pathInText) ?? []),
    ...(info('postinst').match(pathInText) ?? []),
  ];
  const named = new Set(scripts.filter((path) => !isShared(path)));
  const has = (path: string): boolean => listed.has(path) || named.has(path);
  const all = new Set([...[...listed].filter((path) => lookedOver.test(path) && !isShared(path)), ...named]);
  return { has, all, removed };
}

const lookedOver = /^\/(etc|var|opt|srv|usr\/local)\//;
/** Where people keep what is theirs, and nobody looks. */
const notLookedOver = /\/(?:home|root|mnt|media|data)\/[A-Za-z0-9._+@%:/-]*[A-Za-z0-9_+@%-]/g;

/** What the removal of all that is left of a package could take away without anybody having looked. */
function unseenBy(found: DpkgPackage, now: Footprint): string | null {
  const { name, architecture } = found;
  const blind = blindSpot(claimsOf(found).all, now);
  if (blind !== null) return blind;
  const postrm =
    readText(`/var/lib/dpkg/info/${name}:${architecture}.postrm`) ??
    readText(`/var/lib/dpkg/info/${name}.postrm`) ??
    '';
  return postrm.match(notLookedOver)?.find(exists) ?? null;
}

/** Directories that are nobody's: a script that names one is about something in it. */
const shared = new Set(
  [
    '/etc/alternatives /etc/apt /etc/cron.d /etc/cron.daily /etc/cron.hourly /etc/cron.monthly /etc/cron.weekly',
    '/etc/dbus-1 /etc/default /etc/init /etc/init.d /etc/ld.so.conf.d /etc/logrotate.d /etc/network /etc/pam.d',
    '/etc/profile.d /etc/rc0.d /etc/rc1.d /etc/rc2.d /etc/rc3.d /etc/rc4.d /etc/rc5.d /etc/rc6.d /etc/rcS.d',
    '/etc/rsyslog.d /etc/security /etc/skel /etc/ssl /etc/ssl/certs /etc/ssl/private /etc/sudoers.d /etc/sysctl.d',
    '/etc/systemd /etc/systemd/system /etc/systemd/user /etc/tmpfiles.d /etc/udev /etc/udev/rules.d /etc/ufw',
    '/etc/ufw/applications.d /usr/local/bin /usr/local/etc /usr/local/lib /usr/local/sbin /usr/local/share',
    '/var/backups /var/lib /var/lib/dpkg /var/lib/systemd /var/log /var/mail /var/run /var/spool /var/spool/cron',
    '/etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/shells /etc/services /etc/inetd.conf /var/cache',
  ]
    .join(' ')
    .split(' '),
);

/** What dpkg and the system keep account of is not lost by what a script does with it. */
const isShared = (path: string): boolean =>
  shared.has(path) || path.startsWith('/var/lib/dpkg/') || /^\/var\/(cache|run|lock|tmp)\//.test(path);

/**
 * Why these packages are not to be removed with all that is left of them: something of somebody's would be lost. Null
 * when installing them would bring all of it again.
 * @param group   removed together, by `name:architecture`
 * @param trace   of their installation
 * @param now     what stands there now
 */
export function keptBecause(
  group: readonly string[],
  trace: Trace,
  now: Footprint | null,
  database: DpkgDatabase,
): string | null {
  if (trace.unknown !== null) return trace.unknown;
  if (now === null) return 'there are too many files on this machine to tell what was changed since';
  const conffiles = new Set<string>();
  for (const key of group) {
    const found = database.packages.get(key);
    for (const [path, md5] of found?.conffiles ?? []) {
      conffiles.add(path);
      const stamp = now.get(path);
      if (stamp === undefined) continue;
      if (digestAt(path, 'md5', maxRecord) !== md5) return `${path} was changed since it was installed`;
    }
    const unseen = found === undefined ? null : unseenBy(found, now);
    if (unseen !== null) return `what it has at ${unseen} is on another file system, or where nobody looked`;
    const endangered = trace.endangered[key];
    if (endangered !== undefined) return `${endangered} was there before it was installed`;
  }
  const ofOurs = relevantTo(group, trace);
  const traced = new Map(trace.paths.map((entry) => [entry.path, entry]));
  for (const entry of trace.paths) {
    if (!ofOurs(entry) || conffiles.has(entry.path) || isNeverMissed(entry.path)) continue;
    const stamp = now.get(entry.path);
    if (stamp !== undefined && !isAsTraced(entry, stamp)) return `${entry.path} was changed since it was installed`;
  }
  for (const [path, stamp] of now) {
    if (stamp === 'd' || stamp === 's' || traced.has(path) || isNeverMissed(path)) continue;
    // A link to what packages bring; a script of theirs may have renamed it.
    if (stamp.startsWith('l /usr/')) continue;
    const above = nearestTraced(path, traced);
    if (above !== null && ofOurs(above)) return `${path} was added since it was installed`;
  }
  return null;
}

/** Logs, backups that tools make by themselves, and what systemd keeps for itself. */
const isNeverMissed = (path: string): boolean =>
  /^\/var\/(log|backups|lib\/systemd)\//.test(path) ||
  /^\/etc\/((passwd|group|shadow|gshadow|subuid|subgid)-|\.pwd\.lock)$/.test(path);

const isAsTraced = (entry: TracedPath, stamp: string): boolean =>
  stamp === entry.stamp ||
  stamp === 's' ||
  (stamp === 'd' && entry.stamp === 'd') ||
  (entry.digest !== null && digestAt(entry.path, 'sha1') === entry.digest);

/** What came and is not known to be of other packages alone. */
function relevantTo(group: readonly string[], trace: Trace): (entry: TracedPath) => boolean {
  const positions = new Set(group.map((key) => trace.packages.indexOf(key)));
  return ({ of }) => of.length === 0 || of.some((position) => positions.has(position));
}

/** The innermost directory above it that came with the packages. */
function nearestTraced(path: string, traced: ReadonlyMap<string, TracedPath>): TracedPath | null {
  for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
    const entry = traced.get(path.slice(0, cut));
    if (entry !== undefined) return entry;
  }
  return null;
}

/**
 * What came with these packages alone and still stands there as it came, innermost first: their own removal forgot it.
 */
export function leftovers(group: readonly string[], trace: Trace, now: Footprint): TracedPath[] {
  const positions = new Set(group.map((key) => trace.packages.indexOf(key)));
  return (
    trace.paths
      .filter(({ of }) => of.length > 0 && of.every((position) => positions.has(position)))
      // What they do not name may be somebody's; a directory goes only if it is empty.
      .filter(({ named, stamp }) => named === true || stamp === 'd')
      .filter((entry) => {
        const stamp = now.get(entry.path);
        return stamp !== undefined && stamp !== 's' && isAsTraced(entry, stamp);
      })
      .sort((a, b) => (a.path < b.path ? 1 : -1))
  );
}
