import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { aptCache, listTimes, refreshLists } from '../../host/packages/apt.ts';
import { type AptPolicy, parsePolicy, parseProviders } from '../../host/packages/apt-output.ts';
import {
  type DpkgDatabase,
  type DpkgState,
  findPackage,
  isIntact,
  isVersion,
  readDpkg,
} from '../../host/packages/dpkg.ts';
import { type FileContents, readDebFile } from '../../host/packages/package-file.ts';
import { vitalBecause } from '../../host/packages/vital-packages.ts';
import { type FileFormat, fileVersion, isFromFile } from '../package-file/package-file.ts';
import type { Circumstances, Database, Item, Json, Machine } from '../provider/provider.ts';

export type Body = ResourceBodies['package-apt'];
export const bodyOf = (resource: ResolvedResource): Body => resource.body as Body;

/** Observed state of a package. Plain data, which the journal stores unchanged. */
export type SeenPackage = {
  state: DpkgState;
  /** Whether the package needs no repair. */
  whole: boolean;
  version: string | null;
  held: boolean;
  auto: boolean;
  /** Versions and providing packages that the sources offer; null if the decision does not depend on them. */
  offer: { candidate: string | null; offered: string[]; providers: string[]; trouble: string | null } | null;
  /** The file to install the package from; its version is null if unknown. */
  file?: { version: string | null };
  /** The reason why a package that is declared absent must not be removed. */
  vital?: string;
  /** Unneeded dependencies that the agent installed for a package that is already removed. */
  orphans?: string[];
};

type Reference = { sha256: string; size: number };

/** State before the agent's first change, and the packages and paths that came with the installation. */
export type PackageBefore = {
  state: 'absent' | 'config-files' | 'installed';
  version: string | null;
  auto: boolean;
  /** Whether the package was on hold; absent if no module has managed the hold. */
  held?: boolean;
  /** State of the machine before the installation; null once the trace is recorded. */
  ground: Reference | null;
  /** Packages and paths that appeared with the package; null if it was already installed. */
  trace: Reference | null;
};

export type PackageItem = Item<SeenPackage, PackageBefore>;

/** This machine's packages, read once per operation. */
export const dpkgDatabase: Database<DpkgDatabase> = { name: 'dpkg', read: () => readDpkg() };

interface Offers {
  native: string;
  policies: ReadonlyMap<string, AptPolicy>;
  /** The errors of sources that could not be refreshed, or null if all could. */
  trouble: string | null;
  /** When the sources last changed before the query. */
  sourcesChangedAt: number;
}

/** Maximum age of package lists, in milliseconds. Older lists are refreshed before use. */
const freshForMs = 60 * 60_000;
/** Minimum age in milliseconds at which the search for a missing package refreshes the lists again. */
const justNowMs = 60_000;

/** The packages that the sources offer. Plans and applies refresh old lists first; drift checks never do. */
export const freshOffers: Database<Offers> = { name: 'apt offers', read: (machine) => readOffers(machine, true) };
export const knownOffers: Database<Offers> = {
  name: 'known apt offers',
  read: (machine) => readOffers(machine, false),
};

/** Package files of dpkg. A declared version must equal the whole version of the file. */
export const debFile: FileFormat = {
  suffix: '.deb',
  read: readDebFile,
  async misfit(name, contents, machine) {
    const { native } = await machine.database(dpkgDatabase);
    return debMisfit(name, contents, native);
  },
  isVersion: (declared, version) => declared === version,
  isPartial: () => false,
};

/** Returns why a .deb file is not the package with this name on this machine, or null. */
export function debMisfit(name: string, contents: FileContents, native: string): string | null {
  const [baseName, architecture = native] = name.split(':');
  if (contents.name !== baseName) return `the file has the package ${contents.name}, not ${baseName}`;
  const fits = contents.architecture === architecture || (contents.architecture === 'all' && architecture === native);
  return fits
    ? null
    : `the file is for the architecture ${contents.architecture}, not ${architecture}; for another architecture, declare ${baseName}:${contents.architecture}`;
}

export const isDeclaredAbsent = (resource: ResolvedResource): boolean => bodyOf(resource).ensure === 'absent';

/** Reports whether the decision about the package depends on the versions that the sources offer. */
function needsOffer(body: Body, found: Pick<SeenPackage, 'state' | 'version'>): boolean {
  if (body.ensure === 'absent' || body.url != null || body.source != null) return false;
  if (!isThere(found.state) || body.version === 'latest') return true;
  return body.version != null && !isVersion(body.version, found.version ?? '');
}

/** Reports whether the package is installed, completely or partly. */
export const isThere = (state: DpkgState): boolean => state !== 'not-installed' && state !== 'config-files';

const nothingThere: Omit<SeenPackage, 'offer' | 'file' | 'orphans' | 'vital'> = {
  state: 'not-installed',
  whole: true,
  version: null,
  held: false,
  auto: false,
};

export function seenIn(
  database: DpkgDatabase,
  name: string,
): Omit<SeenPackage, 'offer' | 'file' | 'orphans' | 'vital'> {
  const found = findPackage(database, name);
  if (found === null) return nothingThere;
  const { state, version, held, auto } = found;
  return { state, whole: isIntact(found), version: isThere(state) ? version : null, held, auto };
}

/** Returns the state of a package that is to be removed, with the reason if it must not be removed. */
export function seenToGo(database: DpkgDatabase, name: string): Omit<SeenPackage, 'offer' | 'file' | 'orphans'> {
  const seen = seenIn(database, name);
  const found = isThere(seen.state) ? findPackage(database, name) : null;
  const vital = found === null ? null : vitalBecause(found);
  return vital === null ? seen : { ...seen, vital };
}

export async function observePackage(
  resource: ResolvedResource,
  circumstances: Pick<Circumstances, 'purpose'>,
  machine: Machine,
): Promise<SeenPackage> {
  const body = bodyOf(resource);
  const { purpose } = circumstances;
  const look = body.ensure === 'absent' && purpose !== 'drift' ? seenToGo : seenIn;
  const found = look(await machine.database(dpkgDatabase), body.name);
  const declared = resource as ResolvedResource<'package-apt'>;
  if (isFromFile(declared)) {
    const version = await fileVersion(declared, found.version, circumstances, debFile, machine);
    return { ...found, offer: null, file: { version } };
  }
  if (!needsOffer(body, found)) return { ...found, offer: null };
  const database = purpose === 'drift' ? knownOffers : freshOffers;
  let offers = await machine.database(database);
  if (offers.sourcesChangedAt !== listTimes().sourcesChangedAt) {
    // An earlier resource of this operation changed the package sources.
    machine.stale(database);
    offers = await machine.database(database);
  }
  const policy = offers.policies.get(nativeName(body.name, offers.native)) ?? null;
  const candidate = policy?.candidate ?? null;
  const providers =
    candidate === null && policy !== null && purpose !== 'drift' ? await providersOf(body.name, machine) : [];
  const { version } = body;
  const offered = version != null && version !== 'latest' ? (policy?.offered ?? []) : [];
  // Contains only the matching versions, or all of them for the error message if none matches.
  const fitting = offered.filter((found) => isVersion(version ?? '', found));
  return {
    ...found,
    offer: {
      candidate,
      offered: (fitting.length > 0 ? fitting : offered).slice(0, 20),
      providers,
      trouble: offers.trouble,
    },
  };
}

/** Returns the name as apt prints it, without the machine's own architecture. */
export const nativeName = (name: string, native: string): string =>
  name.endsWith(`:${native}`) ? name.slice(0, -native.length - 1) : name;

async function providersOf(name: string, machine: Machine): Promise<string[]> {
  const { stdout } = await aptCache(['showpkg', '--', name], machine);
  return parseProviders(stdout).slice(0, 10);
}

/** Reports whether the package lists are too old to install from, and when they were refreshed. */
function listAge(machine: Machine): { isOld: boolean; refreshedAt: number; sourcesChangedAt: number } {
  const { refreshedAt, sourcesChangedAt } = listTimes();
  const isOld = machine.clock.now() - refreshedAt > freshForMs || sourcesChangedAt >= refreshedAt;
  return { isOld, refreshedAt, sourcesChangedAt };
}

/**
 * Refreshes old package lists, because package files may depend on packages in them.
 * @returns the errors, or null if all sources succeeded or the lists are new
 */
export const refreshOldLists = async (machine: Machine): Promise<string | null> =>
  listAge(machine).isOld ? refreshLists(machine) : null;

async function readOffers(machine: Machine, mayRefresh: boolean): Promise<Offers> {
  const database = await machine.database(dpkgDatabase);
  const lacking = machine
    .resourcesOf('package-apt')
    .map((resource) => bodyOf(resource))
    .filter((body) => needsOffer(body, seenIn(database, body.name)));
  const ask = async (): Promise<Map<string, AptPolicy>> => {
    if (lacking.length === 0) return new Map();
    const names = [...new Set(lacking.map(({ name }) => name))];
    return parsePolicy((await aptCache(['policy', '--', ...names], machine)).stdout);
  };
  const isKnown = (policies: ReadonlyMap<string, AptPolicy>): boolean =>
    lacking.every(({ name, version }) => {
      const policy = policies.get(nativeName(name, database.native));
      if (policy?.candidate == null) return false;
      return version == null || version === 'latest' || policy.offered.some((offered) => isVersion(version, offered));
    });
  let trouble: string | null = null;
  const { isOld, refreshedAt, sourcesChangedAt } = listAge(machine);
  if (mayRefresh && lacking.length > 0 && isOld) trouble = await refreshLists(machine);
  let policies = await ask();
  const isRecent = machine.clock.now() - refreshedAt <= justNowMs;
  if (mayRefresh && !isOld && !isRecent && !isKnown(policies)) {
    trouble = await refreshLists(machine);
    policies = await ask();
  }
  return { native: database.native, policies, trouble, sourcesChangedAt };
}

export const briefly = (seen: SeenPackage): Json => JSON.parse(JSON.stringify(seen));
