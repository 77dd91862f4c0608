import { HostFailure } from '../../host/failure.ts';
import { compareRpmVersions, versionText } from '../../host/packages/rpm-version.ts';
import type { VersionLock } from '../../host/packages/version-locks.ts';
import { lowerBound } from '../../host/packages/version-range.ts';
import { checkFile, keptBack, type PackageFile, withFiles } from '../package-file/package-file.ts';
import { changesPackage } from '../package-hold/package-hold.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { CopyReference } from '../provider/provider.ts';
import {
  type Database,
  type Difference,
  type Item,
  type Machine,
  nothing,
  type Outcome,
} from '../provider/provider.ts';
import { diffPackage, locked } from './diff.ts';
import { hold, release } from './hold.ts';
import { installAll, type RequestedPackage, repairInterrupted } from './install.ts';
import { type PackageRemoval, removeAll } from './remove.ts';
import {
  bodyOf,
  briefly,
  isDeclaredAbsent,
  observePackage,
  offersOf,
  type PackageBefore,
  rpmDatabase,
  rpmFile,
  type SeenPackage,
  seenIn,
} from './seen.ts';

type PackageItem = Item<SeenPackage, PackageBefore>;

/** A package for Fedora or a related distribution, with dnf and rpm. */
export const packageDnf = defineProvider<'package-dnf', SeenPackage, PackageBefore>({
  type: 'package-dnf',
  fields: {
    name: 'text',
    version: 'text?',
    hold: 'boolean?',
    from: 'text?',
    source: 'text?',
    url: 'text?',
    sha256: 'text?',
    ensure: 'text?',
  },
  brings: () => ['accounts', 'units', 'programs', 'databases', 'servers'],
  // A package may contain a package source, as epel-release does. Only its dependents wait for it, so that a misspelled
  // package name still fails a plan.
  bringsToDependents: () => ['packages'],
  check(resource) {
    checkBody(resource);
    checkFile(resource);
  },
  observe: observePackage,
  diff: diffPackage,
  inBrief: briefly,

  async remember({ body }, seen, _difference, before, machine) {
    const locks = body.hold == null || before?.locks !== undefined ? {} : { locks: seen.locks ?? [] };
    if (before !== null) return { ...before, ...locks };
    if (seen.installed !== null) return { version: versionText(seen.installed), ground: null, brought: [], ...locks };
    return { version: null, ground: { ...(await machine.database(ground)) }, brought: [], ...locks };
  },

  async observeForRemoval(resource, before, machine) {
    const { name } = bodyOf(resource);
    const found = seenIn(await machine.database(rpmDatabase), name);
    const comesBack =
      before.version !== null && (found.installed === null || versionText(found.installed) !== before.version);
    if (!comesBack) return { ...found, offer: null };
    const { versions, trouble } = await offersOf(name, machine);
    const original = versions.filter((offered) => versionText(offered) === before.version);
    return {
      ...found,
      offer: { versions: original.length > 0 ? original : versions.slice(-1), providers: [], trouble },
    };
  },

  diffRemoval: (resource, before, seen) => diffPackageRemoval(bodyOf(resource).name, before, seen),

  async apply(resource, seen, difference, machine) {
    return (await together([{ kind: 'apply', resource, seen, difference, before: null }], machine))[0] ?? {};
  },

  async remove(resource, before, seen, difference, machine) {
    return (await together([{ kind: 'remove', resource, seen, difference, before }], machine))[0] ?? {};
  },

  together,

  recover: repairInterrupted,

  afterwards: (_resource, before, machine) => withBrought(before, machine),
});

/** Refuses names and versions that dnf would not interpret as a single package. */
function checkBody({ type, body }: { type: string; body: unknown }): void {
  const { name, version, from } = body as { name: string; version?: string | null; from?: string | null };
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/.test(name))
    throw new HostFailure(
      `${type} manages packages by their names; ${name} is a group, a file, a pattern, or a condition`,
    );
  if (from != null && !/^[A-Za-z0-9_][A-Za-z0-9_.:-]*$/.test(from))
    throw new HostFailure(`${from.slice(0, 100)} is not the id of one repository`);
  if (version == null || version === 'latest') return;
  const bound = lowerBound(version);
  const form =
    bound === null
      ? /^(\d+:)?[A-Za-z0-9_][A-Za-z0-9_.+~^*]*(-[A-Za-z0-9_.+~^*]+)?$/
      : /^(\d+:)?[A-Za-z0-9_.+~^]+(-[A-Za-z0-9_.+~^]+)?$/;
  if (!form.test(bound ?? version))
    throw new HostFailure(
      `${version} is not a version of a package; write 1.2, 1.2-3.fc40, 1:1.2-3.fc40, 1.*, or >=1.2`,
    );
}

/** Decides how a removal restores the original state of a package. */
export function diffPackageRemoval(name: string, before: PackageBefore, seen: SeenPackage): Difference {
  const { installed } = seen;
  const old = before.version;
  if (old === null) {
    if (installed === null) return diffLocks(before, seen);
    if (seen.locked && before.locks === undefined) throw locked(name, 'removed');
    return { action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }], diff: null };
  }
  const offered = seen.offer?.versions.find((found) => versionText(found) === old);
  // Packages from files have no repository. If one could not be read, a later attempt may find the package.
  if (installed === null && seen.offer?.versions.length === 0 && seen.offer.trouble === null)
    return diffLocks(before, seen, 'stays removed, because no repository offers it');
  if (installed === null)
    return {
      action: 'create',
      changes: [
        { field: 'ensure', from: 'absent', to: 'present' },
        ...(offered === undefined ? [] : [{ field: 'version', from: null, to: old }]),
        ...(before.locks === undefined || before.locks.length === 0
          ? []
          : [{ field: 'hold', from: 'false', to: 'true' }]),
      ],
      diff: null,
      ...(offered === undefined
        ? { message: `its version ${old} is no longer offered; another version will be installed` }
        : {}),
    };
  const now = versionText(installed);
  const changes: Difference['changes'] = [];
  const moves = now !== old && offered !== undefined;
  if (moves) {
    if (seen.locked && before.locks === undefined) throw locked(name, `changed to ${old}`);
    changes.push({ field: 'version', from: now, to: old });
  }
  changes.push(...lockChange(before, seen));
  const left =
    now !== old && offered === undefined
      ? `kept at ${now}: the repositories no longer offer the original version ${old}`
      : undefined;
  if (changes.length === 0) return nothing(left);
  const isOlder = moves && compareRpmVersions(offered, installed) < 0;
  const message = left ?? (isOlder ? `${old} is older than ${now}, so this is a downgrade` : undefined);
  return { action: 'update', changes, diff: null, ...(message === undefined ? {} : { message }) };
}

/** Decides how a removal restores the lines that locked a package which is not installed. */
function diffLocks(before: PackageBefore, seen: SeenPackage, message?: string): Difference {
  const changes = lockChange(before, seen);
  if (changes.length === 0) return nothing(message);
  return { action: 'update', changes, diff: null, ...(message === undefined ? {} : { message }) };
}

const lockChange = ({ locks }: PackageBefore, seen: SeenPackage): Difference['changes'] =>
  locks === undefined || sameLocks(locks, seen.locks ?? [])
    ? []
    : [{ field: 'hold', from: String(seen.locked), to: String(locks.length > 0) }];

const sameLocks = (one: readonly VersionLock[], other: readonly VersionLock[]): boolean =>
  one.length === other.length && one.every(({ line }, index) => line === other[index]?.line);

function together(items: readonly PackageItem[], machine: Machine): Promise<Outcome[]> {
  const withFile = items.filter(
    (item) => item.kind === 'apply' && item.seen.file !== undefined && changesPackage(item),
  );
  // Fetches all files first, because a plan reads no file of a missing package.
  return withFiles(withFile, rpmFile, machine, (files) => changeItems(items, files, machine));
}

type Files = ReadonlyMap<PackageItem, PackageFile | HostFailure>;

async function changeItems(items: readonly PackageItem[], files: Files, machine: Machine): Promise<Outcome[]> {
  const outcomes = new Map<PackageItem, Outcome>();
  for (const [item, file] of files) if (file instanceof HostFailure) outcomes.set(item, { failure: file.message });
  const waiting = keptBack(files);
  if (waiting !== null) for (const item of items.filter(isRemoval)) outcomes.set(item, waiting);
  const usable = items.filter((item) => !outcomes.has(item));
  await release(usable, machine);
  // Removes packages first, because they may conflict with the packages to install.
  const removals = usable.filter((item) => isRemoval(item) && changesPackage(item));
  const removed = removals.length === 0 ? null : await removeAll(removals.map(packageRemovalOf), machine);
  for (const item of removals) outcomes.set(item, removed?.get(bodyOf(item.resource).name) ?? {});
  const requested = usable.filter((item) => !isRemoval(item) && changesPackage(item));
  const results =
    requested.length === 0
      ? null
      : await installAll(
          requested.map((item) => requestedPackageOf(item, files.get(item))),
          machine,
        );
  for (const item of requested) outcomes.set(item, results?.get(bodyOf(item.resource).name) ?? {});
  await hold(items, outcomes, machine);
  const database = await machine.database(rpmDatabase);
  for (const item of items.filter((item) => !isRemoval(item))) {
    const { name } = bodyOf(item.resource);
    const outcome = outcomes.get(item) ?? {};
    // A package may be installed although its installation failed.
    const isInstalled = outcome.failure === undefined || seenIn(database, name).installed !== null;
    const before =
      item.kind === 'apply' && item.before !== null && isInstalled ? await withBrought(item.before, machine) : null;
    outcomes.set(item, before === null ? outcome : { ...outcome, before });
  }
  return items.map((item) => outcomes.get(item) ?? {});
}

const isRemoval = ({ kind, resource, before }: PackageItem): boolean =>
  kind === 'apply' ? isDeclaredAbsent(resource) : before?.version === null;

const packageRemovalOf = ({ kind, resource, before }: PackageItem): PackageRemoval => ({
  name: bodyOf(resource).name,
  // The agent did not install a package that is declared absent, so only the package itself is removed.
  brought: kind === 'apply' ? [] : (before?.brought ?? []),
});

function requestedPackageOf(
  { kind, resource, difference }: PackageItem,
  file: PackageFile | HostFailure | undefined,
): RequestedPackage {
  const { name } = bodyOf(resource);
  if (file !== undefined && !(file instanceof HostFailure))
    return { name, version: file.contents.version, file: file.path, from: null };
  const version = difference.changes.find(({ field }) => field === 'version')?.to;
  // A removal restores a version that another repository may have offered.
  const from = kind === 'apply' ? (bodyOf(resource).from ?? null) : null;
  return { name, version: typeof version === 'string' ? version : null, file: null, from };
}

/** Copy of all installed packages' names, created once for all installations in an operation. */
const ground: Database<CopyReference> = {
  name: 'rpm packages before an installation',
  async read(machine) {
    const { packages } = await machine.database(rpmDatabase);
    return machine.copies.keep(Buffer.from(JSON.stringify([...packages.keys()])));
  },
};

/** Maximum size of the copied names, in bytes. */
const maxGround = 16 * 1024 * 1024;

/** Records which packages were installed with this one. */
async function withBrought(before: PackageBefore, machine: Machine): Promise<PackageBefore> {
  if (before.ground === null) return before;
  const stored = machine.copies.read(before.ground, maxGround);
  if (stored === null) return { ...before, ground: null };
  const known = new Set(JSON.parse(stored.toString('utf8')) as string[]);
  const { packages } = await machine.database(rpmDatabase);
  return { ...before, ground: null, brought: [...packages.keys()].filter((name) => !known.has(name)) };
}
