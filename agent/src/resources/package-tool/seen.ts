import type { ResolvedResource } from '@muster/protocol/module';
import { findInstalled, type InstalledPackages, isOwn, splitName } from '../../host/packages/installed-packages.ts';
import type { PackageLock } from '../../host/packages/package-locks.ts';
import { isVersion, type PackageVersion, versionText } from '../../host/packages/rpm-version.ts';
import { fileVersion, isFromFile } from '../package-file/package-file.ts';
import type { Circumstances, Json, Machine } from '../provider/provider.ts';
import { globPattern } from './glob-pattern.ts';
import {
  type Body,
  bodyOf,
  type Freshness,
  type Offer,
  type Offers,
  type PackageCommands,
  type PackageDatabase,
  type PackageTool,
} from './tool.ts';

/** Observed state of a package. Plain data. */
export type SeenPackage = {
  /** The newest installed version, or null if the package is not installed. */
  installed: PackageVersion | null;
  locked: boolean;
  /** The entries that lock exactly this package; absent if a pattern locks it, or if it is not locked. */
  locks?: PackageLock[];
  /** Whether the machine lacks what `hold` needs. */
  lacksPlugin?: true;
  /** Versions that the sources offer, newest last; null if the decision does not depend on them. */
  offer: { versions: PackageVersion[]; providers: string[]; trouble: string | null } | null;
  /** The file to install the package from; its version is null if unknown. */
  file?: { version: string | null };
};

/** The original state of a package, and the packages that were installed with it. */
export type PackageBefore = {
  /** Null if the package was not installed. */
  version: string | null;
  /** The entries that locked the package; absent if no module has managed the lock. */
  locks?: PackageLock[];
  /** Copy of all package names before the installation; null once `brought` is determined. */
  ground: { sha256: string; size: number } | null;
  /** Names of the packages that were installed with it. */
  brought: string[];
};

function needsOffer(
  { ensure, version, url, source }: Body,
  installed: PackageVersion | null,
  { compare }: PackageCommands,
): boolean {
  if (ensure === 'absent' || url != null || source != null) return false;
  if (installed === null || version === 'latest') return true;
  return version != null && !isVersion(version, installed, compare);
}

export function seenIn(
  database: PackageDatabase,
  name: string,
  { locks: file }: Pick<PackageCommands, 'locks'>,
): Omit<SeenPackage, 'offer' | 'file'> {
  const found = findInstalled(database, name).at(-1);
  const baseName = baseNameIn(database, name);
  const locks = file.of(database.lockList, baseName);
  return {
    installed: found === undefined ? null : versionOf(found),
    locked: isLocked(file.names(database.lockList), baseName),
    ...(locks.length === 0 ? {} : { locks }),
  };
}

/** Returns the name of a package without its architecture. */
export const baseNameIn = ({ packages }: Pick<InstalledPackages, 'packages'>, name: string): string =>
  splitName(name, (candidate) => packages.has(candidate))[0];

const versionOf = ({ epoch, version, release }: PackageVersion): PackageVersion => ({ epoch, version, release });

const isLocked = (locks: readonly string[], name: string): boolean =>
  locks.some((lock) => lock === name || globPattern(lock).test(name));

export async function observePackage(
  tool: PackageTool,
  resource: ResolvedResource,
  circumstances: Pick<Circumstances, 'purpose'>,
  machine: Machine,
): Promise<SeenPackage> {
  const { purpose } = circumstances;
  const body = bodyOf(resource);
  const database = await machine.database(tool.database);
  const lacksPlugin = body.hold === true && body.ensure !== 'absent' && !database.canLock;
  const found = { ...seenIn(database, body.name, tool), ...(lacksPlugin ? { lacksPlugin } : {}) };
  const declared = resource as ResolvedResource<'package-dnf'>;
  if (tool.files !== null && isFromFile(declared)) {
    const installed = found.installed === null ? null : versionText(found.installed);
    const version = await fileVersion(declared, installed, circumstances, tool.files, machine);
    return { ...found, offer: null, file: { version } };
  }
  if (!needsOffer(body, found.installed, tool)) return { ...found, offer: null };
  const offered = purpose === 'drift' ? tool.knownOffers : tool.freshOffers;
  let offers = await machine.database(offered);
  if (offers.sources !== tool.sourcesStamp()) {
    // An earlier resource of this operation changed the package sources.
    machine.stale(offered);
    offers = await machine.database(offered);
  }
  const from = body.from ?? null;
  const offer = offers.from.get(from) ?? noOffer;
  const versions = offeredIn(tool, offer, body.name, database);
  const providers = versions.length > 0 || purpose === 'drift' ? [] : await tool.providersOf(body.name, from, machine);
  // Contains only the matching versions, or all of them for the error message if none matches.
  const { version } = body;
  const fitting = version == null ? [] : versions.filter((found) => isVersion(version, found, tool.compare));
  const shown = (fitting.length > 0 ? fitting : versions).slice(-20);
  return { ...found, offer: { versions: shown, providers, trouble: offer.trouble } };
}

const noOffer: Offer = { packages: new Map(), trouble: null };

/** Returns the versions offered under this name, in the order of preference. */
function offeredIn(
  tool: PackageCommands,
  { packages }: Offer,
  name: string,
  { native }: InstalledPackages,
): PackageVersion[] {
  const [baseName, arch] = splitName(name, (candidate) => packages.has(candidate));
  const named = packages.get(baseName) ?? [];
  const own = named.filter((found) => (arch === null ? isOwn(found, native) : found.arch === arch));
  return tool.preferredLast((own.length > 0 || arch !== null ? own : named).map(versionOf));
}

async function query(
  tool: PackageCommands,
  names: readonly string[],
  from: string | null,
  freshness: Freshness,
  machine: Machine,
): Promise<Offer & { isNew: boolean }> {
  const { packages: found, trouble, isNew } = await tool.offers(names, from, freshness, machine);
  return { packages: Map.groupBy(found, ({ name }) => name), trouble, isNew };
}

/** Reads the offers of all packages of an operation that need them. */
export async function readOffers(tool: PackageTool, freshness: 'known' | 'hourly', machine: Machine): Promise<Offers> {
  const sources = tool.sourcesStamp();
  const database = await machine.database(tool.database);
  const lacking = machine
    .resourcesOf(tool.type)
    .map(bodyOf)
    .filter((body) => needsOffer(body, seenIn(database, body.name, tool).installed, tool));
  const from = new Map<string | null, Offer>();
  for (const [repository, bodies] of Map.groupBy(lacking, (body) => body.from ?? null))
    from.set(repository, await readOffer(tool, repository, bodies, freshness, machine));
  return { from, sources };
}

async function readOffer(
  tool: PackageTool,
  from: string | null,
  lacking: readonly Body[],
  freshness: 'known' | 'hourly',
  machine: Machine,
): Promise<Offer> {
  const database = await machine.database(tool.database);
  const names = [...new Set(lacking.map(({ name }) => name))];
  const offer = await query(tool, names, from, freshness, machine);
  const isKnown = ({ name, version }: Body): boolean => {
    const versions = offeredIn(tool, offer, name, database);
    return version == null || version === 'latest'
      ? versions.length > 0
      : versions.some((found) => isVersion(version, found, tool.compare));
  };
  if (freshness === 'known' || offer.isNew || lacking.every(isKnown)) return offer;
  // A missing package may have been published since the last refresh.
  return query(tool, names, from, 'now', machine);
}

/**
 * Returns the offered versions of one package, the preferred one last, and the errors of the repositories. Also returns
 * versions from the known metadata of a repository that cannot be refreshed.
 */
export async function offersOf(
  tool: PackageTool,
  name: string,
  machine: Machine,
): Promise<{ versions: PackageVersion[]; trouble: string | null }> {
  const database = await machine.database(tool.database);
  const offer = await query(tool, [name], null, 'hourly', machine);
  const versions = offeredIn(tool, offer, name, database);
  if (offer.trouble === null) return { versions, trouble: null };
  // dnf ignores a repository that it could not refresh.
  const known = offeredIn(tool, await query(tool, [name], null, 'known', machine), name, database);
  const added = known.filter((one) => !versions.some((other) => tool.compare(one, other) === 0));
  return { versions: [...added, ...versions], trouble: offer.trouble };
}

export const briefly = (seen: SeenPackage): Json => JSON.parse(JSON.stringify(seen)) as Json;
