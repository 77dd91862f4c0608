import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { dnfQuery, dnfSourcesStamp } from '../../host/packages/dnf.ts';
import { dnfComplaint } from '../../host/packages/dnf-output.ts';
import { type FileContents, readRpmFile } from '../../host/packages/package-file.ts';
import {
  findRpm,
  isOwn,
  parsePackages,
  type RpmDatabase,
  type RpmPackage,
  readRpm,
  splitName,
} from '../../host/packages/rpm.ts';
import {
  compareRpmVersions,
  isVersion,
  parseVersion,
  type RpmVersion,
  versionText,
} from '../../host/packages/rpm-version.ts';
import { locksOf, type VersionLock } from '../../host/packages/version-locks.ts';
import { type FileFormat, fileVersion, isFromFile } from '../package-file/package-file.ts';
import type { Circumstances, Database, Json, Machine } from '../provider/provider.ts';

export type Body = ResourceBodies['package-dnf'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;

/** Observed state of a package. Plain data. */
export type SeenPackage = {
  /** The newest installed version, or null if the package is not installed. */
  installed: RpmVersion | null;
  locked: boolean;
  /** The lines that lock exactly this package; absent if a pattern locks it, or if it is not locked. */
  locks?: VersionLock[];
  /** Whether dnf's plugin versionlock, which the resource needs, is missing or disabled. */
  lacksPlugin?: true;
  /** Versions that the sources offer, newest last; null if the decision does not depend on them. */
  offer: { versions: RpmVersion[]; providers: string[]; trouble: string | null } | null;
  /** The file to install the package from; its version is null if unknown. */
  file?: { version: string | null };
};

/** The original state of a package, and the packages that were installed with it. */
export type PackageBefore = {
  /** Null if the package was not installed. */
  version: string | null;
  /** The lines that locked the package; absent if no module has managed the lock. */
  locks?: VersionLock[];
  /** Copy of all package names before the installation; null once `brought` is determined. */
  ground: { sha256: string; size: number } | null;
  /** Names of the packages that were installed with it. */
  brought: string[];
};

/** This machine's packages, read once per operation. */
export const rpmDatabase: Database<RpmDatabase> = { name: 'rpm', read: (machine) => readRpm(machine) };

interface Offer {
  packages: ReadonlyMap<string, readonly RpmPackage[]>;
  trouble: string | null;
}

interface Offers {
  /** The offer of each repository that a resource names; with the key null, that of all enabled repositories. */
  from: ReadonlyMap<string | null, Offer>;
  /** Stamp that identifies the source configuration at the time when the offers were read. */
  sources: string;
}

/** Maximum age of repository metadata in seconds. Older metadata is refreshed before use. */
const freshForSecs = 3600;

/** The packages that the repositories offer. Plans and applies refresh old metadata first; drift checks never do. */
export const freshOffers: Database<Offers> = {
  name: 'dnf offers',
  read: (machine) => readOffers(machine, [`--setopt=metadata_expire=${freshForSecs}`]),
};
export const knownOffers: Database<Offers> = {
  name: 'known dnf offers',
  read: (machine) => readOffers(machine, ['--cacheonly']),
};

/** Package files of rpm. */
export const rpmFile: FileFormat = {
  suffix: '.rpm',
  read: readRpmFile,
  async misfit(name, contents, machine) {
    const { native } = await machine.database(rpmDatabase);
    return rpmMisfit(name, contents, native);
  },
  isVersion: (declared, version) => isVersion(declared, parseVersion(version)),
  isPartial: (declared) => !declared.includes(':'),
};

/** Returns why an .rpm file is not the package with this name on this machine, or null. */
export function rpmMisfit(name: string, contents: FileContents, native: string): string | null {
  const [baseName, declaredArch] = splitName(name, (candidate) => candidate === contents.name);
  if (contents.name !== baseName) return `the file has the package ${contents.name}, not ${baseName}`;
  const { architecture: arch } = contents;
  const fits = declaredArch === null ? isOwn({ arch }, native) : arch === declaredArch;
  return fits
    ? null
    : `the file is for the architecture ${arch}, not ${declaredArch ?? native}; for another architecture, declare ${baseName}.${arch}`;
}

export const isDeclaredAbsent = (resource: ResolvedResource): boolean => bodyOf(resource).ensure === 'absent';

function needsOffer({ ensure, version, url, source }: Body, installed: RpmVersion | null): boolean {
  if (ensure === 'absent' || url != null || source != null) return false;
  if (installed === null || version === 'latest') return true;
  return version != null && !isVersion(version, installed);
}

export function seenIn(database: RpmDatabase, name: string): Omit<SeenPackage, 'offer' | 'file'> {
  const found = findRpm(database, name).at(-1);
  const locks = locksOf(database.lockList, baseNameIn(database, name));
  return {
    installed: found === undefined ? null : versionOf(found),
    locked: isLocked(database, name),
    ...(locks.length === 0 ? {} : { locks }),
  };
}

/** Returns the name of a package without its architecture. */
export const baseNameIn = ({ packages }: Pick<RpmDatabase, 'packages'>, name: string): string =>
  splitName(name, (candidate) => packages.has(candidate))[0];

const versionOf = ({ epoch, version, release }: RpmVersion): RpmVersion => ({ epoch, version, release });

const isLocked = ({ locks, packages }: RpmDatabase, name: string): boolean => {
  const baseName = baseNameIn({ packages }, name);
  return locks.some(
    (lock) =>
      lock === baseName ||
      new RegExp(
        `^${lock
          .replace(/[^\w*?]/g, '\\$&')
          .replaceAll('*', '.*')
          .replaceAll('?', '.')}$`,
      ).test(baseName),
  );
};

export async function observePackage(
  resource: ResolvedResource,
  circumstances: Pick<Circumstances, 'purpose'>,
  machine: Machine,
): Promise<SeenPackage> {
  const { purpose } = circumstances;
  const body = bodyOf(resource);
  const database = await machine.database(rpmDatabase);
  const lacksPlugin = body.hold === true && body.ensure !== 'absent' && !database.canLock;
  const found = { ...seenIn(database, body.name), ...(lacksPlugin ? { lacksPlugin } : {}) };
  const declared = resource as ResolvedResource<'package-dnf'>;
  if (isFromFile(declared)) {
    const installed = found.installed === null ? null : versionText(found.installed);
    const version = await fileVersion(declared, installed, circumstances, rpmFile, machine);
    return { ...found, offer: null, file: { version } };
  }
  if (!needsOffer(body, found.installed)) return { ...found, offer: null };
  const offered = purpose === 'drift' ? knownOffers : freshOffers;
  let offers = await machine.database(offered);
  if (offers.sources !== dnfSourcesStamp()) {
    // An earlier resource of this operation changed the package sources.
    machine.stale(offered);
    offers = await machine.database(offered);
  }
  const from = body.from ?? null;
  const offer = offers.from.get(from) ?? noOffer;
  const versions = offeredIn(offer, body.name, database);
  const providers = versions.length > 0 || purpose === 'drift' ? [] : await providersOf(body.name, from, machine);
  // Contains only the matching versions, or all of them for the error message if none matches.
  const { version } = body;
  const fitting = version == null ? [] : versions.filter((found) => isVersion(version, found));
  const shown = (fitting.length > 0 ? fitting : versions).slice(-20);
  return { ...found, offer: { versions: shown, providers, trouble: offer.trouble } };
}

const noOffer: Offer = { packages: new Map(), trouble: null };

/** Returns the versions offered under this name, newest last. */
function offeredIn({ packages }: Offer, name: string, { native }: RpmDatabase): RpmVersion[] {
  const [baseName, arch] = splitName(name, (candidate) => packages.has(candidate));
  const named = packages.get(baseName) ?? [];
  const own = named.filter((found) => (arch === null ? isOwn(found, native) : found.arch === arch));
  return (own.length > 0 || arch !== null ? own : named).map(versionOf).sort(compareRpmVersions);
}

const queryFormat = '%{name}\\t%{epoch}\\t%{version}\\t%{release}\\t%{arch}';

/** Returns the options of dnf with which it reads only this repository, even if that is disabled. */
const only = (from: string | null): string[] => (from === null ? [] : [`--repo=${from}`]);

/** @param from id of the only repository to query; null for all enabled ones */
async function query(
  names: readonly string[],
  from: string | null,
  options: readonly string[],
  machine: Machine,
): Promise<Offer> {
  const args = [...options, ...only(from), 'repoquery', '--available', '--qf', queryFormat, '--', ...names];
  const { exitCode, stdout, stderr } = await dnfQuery(args, machine);
  const packages = new Map<string, RpmPackage[]>();
  for (const found of parsePackages(stdout)) packages.set(found.name, [...(packages.get(found.name) ?? []), found]);
  const failed = exitCode !== 0 || /^(Error|Errors during downloading)/m.test(stderr);
  return { packages, trouble: failed ? dnfComplaint(stderr) : null };
}

async function readOffers(machine: Machine, options: readonly string[]): Promise<Offers> {
  const sources = dnfSourcesStamp();
  const database = await machine.database(rpmDatabase);
  const lacking = machine
    .resourcesOf('package-dnf')
    .map(bodyOf)
    .filter((body) => needsOffer(body, seenIn(database, body.name).installed));
  const from = new Map<string | null, Offer>();
  for (const [repository, bodies] of Map.groupBy(lacking, (body) => body.from ?? null))
    from.set(repository, await readOffer(repository, bodies, options, machine));
  return { from, sources };
}

async function readOffer(
  from: string | null,
  lacking: readonly Body[],
  options: readonly string[],
  machine: Machine,
): Promise<Offer> {
  const database = await machine.database(rpmDatabase);
  const names = [...new Set(lacking.map(({ name }) => name))];
  const offer = await query(names, from, options, machine);
  const isKnown = ({ name, version }: Body): boolean => {
    const versions = offeredIn(offer, name, database);
    return version == null || version === 'latest'
      ? versions.length > 0
      : versions.some((found) => isVersion(version, found));
  };
  if (options.includes('--cacheonly') || lacking.every(isKnown)) return offer;
  // A missing package may have been published since the last refresh.
  return query(names, from, ['--refresh'], machine);
}

/** Returns the offered versions of one package, newest last, and the errors of the repositories. Used for a removal. */
export async function offersOf(
  name: string,
  machine: Machine,
): Promise<{ versions: RpmVersion[]; trouble: string | null }> {
  const offer = await query([name], null, [], machine);
  return { versions: offeredIn(offer, name, await machine.database(rpmDatabase)), trouble: offer.trouble };
}

async function providersOf(name: string, from: string | null, machine: Machine): Promise<string[]> {
  const args = [...only(from), 'repoquery', '--available', '--qf', '%{name}', '--whatprovides', name];
  const { stdout } = await dnfQuery(args, machine);
  return [...new Set(stdout.split('\n').filter((line) => /^[A-Za-z0-9_]\S*$/.test(line)))].sort().slice(0, 10);
}

export const briefly = (seen: SeenPackage): Json => JSON.parse(JSON.stringify(seen)) as Json;
