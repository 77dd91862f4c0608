import { blindSpot, bornAt, digestAt, type Footprint, takeFootprint } from '../../host/files/footprint.ts';
import { type DpkgDatabase, type DpkgPackage, dpkgChangedAt, pathsOf, unpackedAt } from '../../host/packages/dpkg.ts';
import { exists, readText } from '../../host/read-system.ts';
import type { CopyReference, Database, Machine } from '../provider/provider.ts';
import { dpkgDatabase, isThere } from './seen.ts';

/**
 * Records which packages and which configuration and data paths appeared with an installation. Removal uses it to
 * decide which remains can be deleted.
 */

/** State before the installation. */
interface Ground {
  /** Packages in dpkg's database, in any state, as `name:architecture`. */
  packages: string[];
  /** Null if there were too many paths to scan. */
  paths: [string, string][] | null;
}

export interface Trace {
  /** Packages that were not in dpkg's database in any state before the installation. */
  packages: string[];
  /** The reason why new paths are unknown, or null. With a reason, the other fields are empty. */
  unknown: string | null;
  paths: TracedPath[];
  /** For each package, a path that existed before and that purging the package would delete. */
  endangered: Record<string, string>;
}

export interface TracedPath {
  path: string;
  stamp: string;
  /** Digest of a small file's content; null for everything else. */
  digest: string | null;
  /** Positions in `packages` of the packages that list or name the path. Empty if the owner is unknown. */
  of: number[];
  /** Whether lists or scripts name the path itself, not only a directory above it. */
  named?: boolean;
}

/** Maximum record size in bytes; no real record is larger. */
const maxRecord = 64 * 1024 * 1024;

/** State before an installation, taken once in each operation for all packages to install. */
export const ground: Database<CopyReference> = {
  name: 'packages before an installation',
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

/**
 * Returns the database of packages and paths that appeared since `from`, which all packages in one transaction share.
 */
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
  if (before === null) return { ...blank, unknown: 'the record of its installation is missing' };
  if (before.paths === null || now === null)
    return { ...blank, unknown: 'this machine has too many files to determine which ones came with the package' };
  const there = new Map(before.paths);
  const came = packages.map((key) => database.packages.get(key) as DpkgPackage);
  const claims = came.map(claimsOf);
  const unpacked = came.map(unpackedAt);
  const finished = dpkgChangedAt() + settlingMs;
  const paths: TracedPath[] = [];
  const byPath = new Map<string, TracedPath>();
  const foreign = new Set<string>();
  const above = (path: string): TracedPath | undefined => byPath.get(path.slice(0, path.lastIndexOf('/')));
  // Visits a directory before its entries, because a path in a new directory belongs to that directory's owner.
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
  // A directory without a known owner belongs to the owners of the paths that it contains.
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

/** Milliseconds after the installation in which a program that a package started may still write files. */
const settlingMs = 2000;
/** Directories in which users create files themselves. */
const userDirectories = /^\/(etc|srv|opt|usr\/local|var\/www)\//;

/**
 * Reports whether a new path may come from packages whose lists and scripts do not name it. Other users may change the
 * machine at the same time, and a restarted agent may record the trace days later.
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
  return born >= from && !(stamp.startsWith('f ') && userDirectories.test(path));
}

interface Claims {
  has(path: string): boolean;
  /** All paths of the package, without shared directories. */
  all: ReadonlySet<string>;
  /** Paths that the purge script names. */
  removed: string[];
}

/** Matches paths in a package script. */
const pathInText = /\/(?:etc|var|opt|srv|usr\/local)\/[A-Za-z0-9._+@%:/-]*[A-Za-z0-9_+@%-]/g;

function claimsOf({ name, architecture, state }: DpkgPackage): Claims {
  const info = (what: string): string =>
    readText(`/var/lib/dpkg/info/${name}:${architecture}.${what}`) ??
    readText(`/var/lib/dpkg/info/${name}.${what}`) ??
    '';
  const listed = new Set(isThere(state) ? pathsOf({ name, architecture }) : []);
  const removed = [...new Set(info('postrm').match(pathInText) ?? [])];
  // A new path counts as the package's own if the package's scripts name it.
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
/** Directories for users' own files, which the footprint does not scan. */
const notLookedOver = /\/(?:home|root|mnt|media|data)\/[A-Za-z0-9._+@%:/-]*[A-Za-z0-9_+@%-]/g;

/** Returns a path that purging the package could delete and that the footprint did not scan, or null. */
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

/** Directories that no single package owns. A script that names one refers to a path in it. */
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

/** Includes state that dpkg and the system maintain. A script that deletes such state loses no data. */
const isShared = (path: string): boolean =>
  shared.has(path) || path.startsWith('/var/lib/dpkg/') || /^\/var\/(cache|run|lock|tmp)\//.test(path);

/**
 * Returns the reason why purging the given packages would lose a change by others, or null if a new installation would
 * recreate everything.
 * @param group packages removed together, as `name:architecture`
 * @param trace trace of their installation
 * @param now current footprint
 */
export function reasonToKeep(
  group: readonly string[],
  trace: Trace,
  now: Footprint | null,
  database: DpkgDatabase,
): string | null {
  if (trace.unknown !== null) return trace.unknown;
  if (now === null) return 'this machine has too many files to determine what changed since the installation';
  const conffiles = new Set<string>();
  for (const key of group) {
    const found = database.packages.get(key);
    for (const [path, md5] of found?.conffiles ?? []) {
      conffiles.add(path);
      const stamp = now.get(path);
      if (stamp === undefined) continue;
      if (digestAt(path, 'md5', maxRecord) !== md5) return `${path} has been changed since it was installed`;
    }
    const unseen = found === undefined ? null : unseenBy(found, now);
    if (unseen !== null) return `${unseen} is on another file system or was not scanned`;
    const endangered = trace.endangered[key];
    if (endangered !== undefined) return `${endangered} existed before the package was installed`;
  }
  const isRelevant = relevantTo(group, trace);
  const traced = new Map(trace.paths.map((entry) => [entry.path, entry]));
  for (const entry of trace.paths) {
    if (!isRelevant(entry) || conffiles.has(entry.path) || isNeverMissed(entry.path)) continue;
    const stamp = now.get(entry.path);
    if (stamp !== undefined && !isAsTraced(entry, stamp))
      return `${entry.path} has been changed since it was installed`;
  }
  for (const [path, stamp] of now) {
    if (stamp === 'd' || stamp === 's' || traced.has(path) || isNeverMissed(path)) continue;
    // A link to a packaged file; a package script may have renamed the link.
    if (stamp.startsWith('l /usr/')) continue;
    const above = nearestTraced(path, traced);
    if (above !== null && isRelevant(above)) return `${path} was added since it was installed`;
  }
  return null;
}

/** Reports whether a path is a log, an automatic backup, or systemd state, which can be deleted without losing data. */
const isNeverMissed = (path: string): boolean =>
  /^\/var\/(log|backups|lib\/systemd)\//.test(path) ||
  /^\/etc\/((passwd|group|shadow|gshadow|subuid|subgid)-|\.pwd\.lock)$/.test(path);

const isAsTraced = (entry: TracedPath, stamp: string): boolean =>
  stamp === entry.stamp ||
  stamp === 's' ||
  (stamp === 'd' && entry.stamp === 'd') ||
  (entry.digest !== null && digestAt(entry.path, 'sha1') === entry.digest);

/** Returns a filter for new paths that the given packages own, possibly with others, or that have no known owner. */
function relevantTo(group: readonly string[], trace: Trace): (entry: TracedPath) => boolean {
  const positions = new Set(group.map((key) => trace.packages.indexOf(key)));
  return ({ of }) => of.length === 0 || of.some((position) => positions.has(position));
}

/** Returns the innermost directory above the path that appeared with the packages. */
function nearestTraced(path: string, traced: ReadonlyMap<string, TracedPath>): TracedPath | null {
  for (let cut = path.lastIndexOf('/'); cut > 0; cut = path.lastIndexOf('/', cut - 1)) {
    const entry = traced.get(path.slice(0, cut));
    if (entry !== undefined) return entry;
  }
  return null;
}

/** Returns the unchanged paths that only the given packages installed and that remain after their removal, innermost first. */
export function leftovers(group: readonly string[], trace: Trace, now: Footprint): TracedPath[] {
  const positions = new Set(group.map((key) => trace.packages.indexOf(key)));
  return (
    trace.paths
      .filter(({ of }) => of.length > 0 && of.every((position) => positions.has(position)))
      // A path that the packages do not name may belong to a user. A directory is removed only if it is empty.
      .filter(({ named, stamp }) => named === true || stamp === 'd')
      .filter((entry) => {
        const stamp = now.get(entry.path);
        return stamp !== undefined && stamp !== 's' && isAsTraced(entry, stamp);
      })
      .sort((a, b) => (a.path < b.path ? 1 : -1))
  );
}
