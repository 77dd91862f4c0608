import { HostFailure } from '../host/failure.ts';
import { compareRpmVersions, versionText } from '../host/packages/rpm-version.ts';
import { lowerBound } from '../host/packages/version-range.ts';
import { diffPackage, locked } from './package-dnf/diff.ts';
import { installAll, repairInterrupted, type WantedPackage } from './package-dnf/install.ts';
import { type PackageRemoval, removeAll } from './package-dnf/remove.ts';
import {
  bodyOf,
  briefly,
  isDeclaredAbsent,
  observePackage,
  offersOf,
  rpmDatabase,
  type SeenPackage,
  seenIn,
} from './package-dnf/seen.ts';
import type { CopyReference } from './provider/provider.ts';
import {
  type Database,
  type Difference,
  type Item,
  type Machine,
  nothing,
  type Outcome,
  type Provider,
} from './provider/provider.ts';

/** What was there before our first change, and what came with it. */
export type PackageBefore = {
  /** Null: it was not there. */
  version: string | null;
  /** Names of all that was there when it was about to be installed; null once that is compared. */
  ground: { sha256: string; size: number } | null;
  /** Names of what came with it. */
  brought: string[];
};

type PackageItem = Item<SeenPackage, PackageBefore>;

/** Packages of Fedora and its kin, by dnf and rpm. */
export const packageDnf: Provider<SeenPackage, PackageBefore> = {
  type: 'package-dnf',
  recheckable: true,
  brings: () => ['accounts', 'units', 'programs'],
  // It may be one that carries a source of packages, such as epel-release. A name that is wrong must still fail the
  // plan beside others.
  bringsToDependents: () => ['packages'],
  path: () => null,
  check: checkBody,
  observe: observePackage,
  diff: diffPackage,
  inBrief: briefly,
  canTell: () => true,
  weight: () => 0,

  async remember(_resource, seen, _difference, before, machine) {
    if (before !== null) return before;
    if (seen.installed !== null) return { version: versionText(seen.installed), ground: null, brought: [] };
    return { version: null, ground: { ...(await machine.database(ground)) }, brought: [] };
  },

  claim: () => null,

  async observeForRemoval(resource, before, machine) {
    const { name } = bodyOf(resource);
    const found = seenIn(await machine.database(rpmDatabase), name);
    const comesBack =
      before.version !== null && (found.installed === null || versionText(found.installed) !== before.version);
    if (!comesBack) return { ...found, offer: null };
    const versions = (await offersOf(name, machine)).filter((offered) => versionText(offered) === before.version);
    return { ...found, offer: { versions, providers: [], trouble: null } };
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
};

/** What dnf would take for more than the name of one package. */
function checkBody({ type, body }: { type: string; body: unknown }): void {
  const { name, version } = body as { name: string; version?: string | null };
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/.test(name))
    throw new HostFailure(
      `${type} manages packages by their names: ${name} is a group, a file, a pattern or a condition`,
    );
  if (version == null || version === 'latest') return;
  const bound = lowerBound(version);
  const form =
    bound === null
      ? /^(\d+:)?[A-Za-z0-9_][A-Za-z0-9_.+~^*]*(-[A-Za-z0-9_.+~^*]+)?$/
      : /^(\d+:)?[A-Za-z0-9_.+~^]+(-[A-Za-z0-9_.+~^]+)?$/;
  if (!form.test(bound ?? version))
    throw new HostFailure(`${version} is no version of a package: write 1.2, 1.2-3.fc40, 1:1.2-3.fc40, 1.* or >=1.2`);
}

/** Decides what brings back what was there before us. */
export function diffPackageRemoval(name: string, before: PackageBefore, seen: SeenPackage): Difference {
  const { installed } = seen;
  const old = before.version;
  if (old === null) {
    if (installed === null) return nothing();
    if (seen.locked) throw locked(name, 'removed');
    return { action: 'remove', changes: [{ field: 'ensure', from: 'present', to: 'absent' }], diff: null };
  }
  const offered = seen.offer?.versions.find((found) => versionText(found) === old);
  if (installed === null)
    return {
      action: 'create',
      changes: [
        { field: 'ensure', from: 'absent', to: 'present' },
        ...(offered === undefined ? [] : [{ field: 'version', from: null, to: old }]),
      ],
      diff: null,
      ...(offered === undefined ? { message: `its version ${old} is offered no more: another one comes back` } : {}),
    };
  const now = versionText(installed);
  if (now === old) return nothing();
  if (offered === undefined)
    return nothing(`left at ${now}: the repositories do not offer ${old} any more, which was there before`);
  if (seen.locked) throw locked(name, `changed to ${old}`);
  const isOlder = compareRpmVersions(offered, installed) < 0;
  return {
    action: 'update',
    changes: [{ field: 'version', from: now, to: old }],
    diff: null,
    ...(isOlder ? { message: `${old} is older than ${now}: a downgrade` } : {}),
  };
}

async function together(items: readonly PackageItem[], machine: Machine): Promise<Outcome[]> {
  const outcomes = new Map<PackageItem, Outcome>();
  // First what is to go: it may be in the way of what is to come.
  const going = items.filter(isGoing);
  const removed = going.length === 0 ? null : await removeAll(going.map(packageRemovalOf), machine);
  for (const item of going) outcomes.set(item, removed?.get(bodyOf(item.resource).name) ?? {});
  const coming = items.filter((item) => !isGoing(item));
  const wanted = coming.flatMap(wantedPackageOf);
  const told = wanted.length === 0 ? null : await installAll(wanted, machine);
  const database = await machine.database(rpmDatabase);
  for (const item of coming) {
    const { name } = bodyOf(item.resource);
    const outcome = told?.get(name) ?? {};
    // It may have failed, and yet have come.
    const came = outcome.failure === undefined || seenIn(database, name).installed !== null;
    const before =
      item.kind === 'apply' && item.before !== null && came ? await withBrought(item.before, machine) : null;
    outcomes.set(item, before === null ? outcome : { ...outcome, before });
  }
  return items.map((item) => outcomes.get(item) ?? {});
}

const isGoing = ({ kind, resource, before }: PackageItem): boolean =>
  kind === 'apply' ? isDeclaredAbsent(resource) : before?.version === null;

const packageRemovalOf = ({ kind, resource, before }: PackageItem): PackageRemoval => ({
  name: bodyOf(resource).name,
  // Declared absent: it is not ours, so nothing goes but the package itself.
  brought: kind === 'apply' ? [] : (before?.brought ?? []),
});

function wantedPackageOf({ resource, difference }: PackageItem): WantedPackage[] {
  const fields = new Map(difference.changes.map(({ field, to }) => [field, to]));
  if (!fields.has('ensure') && !fields.has('version')) return [];
  const version = fields.get('version');
  return [{ name: bodyOf(resource).name, version: typeof version === 'string' ? version : null }];
}

/** Names of all packages, kept once an operation for all that are about to come. */
const ground: Database<CopyReference> = {
  name: 'ground of rpm packages',
  async read(machine) {
    const { packages } = await machine.database(rpmDatabase);
    return machine.copies.keep(Buffer.from(JSON.stringify([...packages.keys()])));
  },
};

/** Larger than any of them is. Bytes. */
const maxGround = 16 * 1024 * 1024;

/** Once it is there: what came with it. */
async function withBrought(before: PackageBefore, machine: Machine): Promise<PackageBefore> {
  if (before.ground === null) return before;
  const kept = machine.copies.read(before.ground, maxGround);
  if (kept === null) return { ...before, ground: null };
  const known = new Set(JSON.parse(kept.toString('utf8')) as string[]);
  const { packages } = await machine.database(rpmDatabase);
  return { ...before, ground: null, brought: [...packages.keys()].filter((name) => !known.has(name)) };
}
