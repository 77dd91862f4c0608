import { readdirSync, readFileSync, statSync } from 'node:fs';
import { compareVersions } from '@muster/protocol/version-order';
import { errnoOf, HostFailure, hostFailure } from '../failure.ts';
import { bornAt } from '../files/footprint.ts';
import { namesIn } from '../read-system.ts';
import { lowerBound, matchesPattern } from './version-range.ts';

/** Reads dpkg's database directly from its files, without starting a program or taking a lock. */

export const dpkgStates = [
  'not-installed',
  'config-files',
  'half-installed',
  'unpacked',
  'half-configured',
  'triggers-awaited',
  'triggers-pending',
  'installed',
] as const;
export type DpkgState = (typeof dpkgStates)[number];

export interface DpkgPackage {
  name: string;
  architecture: string;
  state: DpkgState;
  /** Whether the package is on hold (`apt-mark hold`), so that it must not be changed. */
  held: boolean;
  /** Whether the package must be reinstalled before dpkg can change it. */
  reinstallRequired: boolean;
  essential: boolean;
  /** The installed version; null if the package is not installed. */
  version: string | null;
  /** Whether the package was installed as a dependency, so that apt may remove it once no package needs it. */
  auto: boolean;
  /** Configuration files by path, with the MD5 of the packaged content. */
  conffiles: ReadonlyMap<string, string>;
}

export interface DpkgDatabase {
  /** The architecture of package names that do not specify one. */
  native: string;
  /** Packages by `name:architecture`. */
  packages: ReadonlyMap<string, DpkgPackage>;
  /** Whether dpkg was interrupted and has changes that are not yet merged. */
  interrupted: boolean;
}

const status = '/var/lib/dpkg/status';
const updatesPath = '/var/lib/dpkg/updates';
const extendedStates = '/var/lib/apt/extended_states';
/** Maximum file size in bytes. Thirty times the size on a machine with all packages installed. */
const maxBytes = 512 * 1024 * 1024;

/**
 * Reads the database, including updates that an interrupted dpkg has not merged.
 * @throws HostFailure if this machine has no dpkg, or its database is invalid
 */
export function readDpkg(): DpkgDatabase {
  const text = read(status);
  if (text === null) throw new HostFailure('this machine has no dpkg: /var/lib/dpkg/status does not exist');
  const pending = namesOf(updatesPath).map((name) => read(`${updatesPath}/${name}`) ?? '');
  return parseDpkg(text, pending, read(extendedStates) ?? '');
}

/**
 * @param text     content of the status file
 * @param updates  later stanzas, each of which replaces the earlier one
 * @param extended apt's extended states
 * @throws HostFailure if the text is truncated or is not a status file
 */
export function parseDpkg(text: string, updates: readonly string[], extended: string): DpkgDatabase {
  const packages = new Map<string, DpkgPackage>();
  const take = (stanzas: string, path: string) => {
    for (const fields of parseStanzas(stanzas)) {
      const found = packageOf(fields, path);
      packages.set(keyOf(found), found);
    }
  };
  take(text, status);
  for (const update of updates) take(update, updatesPath);
  const native = nativeArchitecture(packages);
  for (const fields of parseStanzas(extended)) {
    if (fields.get('auto-installed') !== '1') continue;
    const name = fields.get('package') ?? '';
    const architecture = fields.get('architecture') ?? native;
    // apt writes the native architecture where dpkg writes `all`.
    for (const key of [`${name}:${architecture}`, ...(architecture === native ? [`${name}:all`] : [])]) {
      const found = packages.get(key);
      if (found !== undefined) packages.set(key, { ...found, auto: true });
    }
  }
  return { native, packages, interrupted: updates.length > 0 };
}

const keyOf = ({ name, architecture }: { name: string; architecture: string }): string => `${name}:${architecture}`;

function packageOf(fields: ReadonlyMap<string, string>, path: string): DpkgPackage {
  const name = fields.get('package');
  const words = fields.get('status')?.split(/\s+/) ?? [];
  const state = dpkgStates.find((known) => known === words[2]);
  if (name === undefined || words.length !== 3 || state === undefined)
    throw new HostFailure(
      `${path} is invalid at ${name === undefined ? 'a package without a name' : `package ${name}`}; check it with: dpkg --audit`,
    );
  const version = fields.get('version') ?? null;
  return {
    name,
    architecture: fields.get('architecture') ?? 'all',
    state,
    held: words[0] === 'hold',
    reinstallRequired: words[1] === 'reinstreq',
    essential: ['essential', 'protected', 'important'].some((field) => fields.get(field) === 'yes'),
    version: state === 'not-installed' ? null : version,
    auto: false,
    conffiles: conffilesOf(fields.get('conffiles') ?? ''),
  };
}

/** Parses lines that each contain a path and an MD5 hash. `obsolete` marks a file that is no longer in the package. */
function conffilesOf(text: string): Map<string, string> {
  const conffiles = new Map<string, string>();
  for (const line of text.split('\n')) {
    const parts = /^\s*(\/.*) ([0-9a-f]{32})(?: obsolete)?(?: remove-on-upgrade)?$/.exec(line);
    if (parts !== null) conffiles.set(parts[1] as string, parts[2] as string);
  }
  return conffiles;
}

/** Returns the native architecture, which is that of the `dpkg` package. */
function nativeArchitecture(packages: ReadonlyMap<string, DpkgPackage>): string {
  for (const { name, architecture, state } of packages.values())
    if (name === 'dpkg' && state !== 'not-installed' && architecture !== 'all') return architecture;
  throw new HostFailure(`${status} does not list dpkg itself as installed; the file may be truncated`);
}

/** Parses stanzas of `Field: value` lines, as in the files of dpkg and apt. Field names are lower-cased. */
export function* parseStanzas(text: string): Generator<Map<string, string>> {
  let fields = new Map<string, string>();
  let last = '';
  for (const line of lines(text)) {
    if (line.trim() === '') {
      if (fields.size > 0) yield fields;
      fields = new Map();
      last = '';
    } else if (line.startsWith(' ') || line.startsWith('\t')) {
      if (last !== '') fields.set(last, `${fields.get(last)}\n${line}`);
    } else {
      const colon = line.indexOf(':');
      if (colon <= 0) {
        last = '';
        continue;
      }
      last = line.slice(0, colon).toLowerCase();
      fields.set(last, line.slice(colon + 1).trim());
    }
  }
  if (fields.size > 0) yield fields;
}

/** Yields one line at a time, because the file is large and mostly descriptions. */
function* lines(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const end = text.indexOf('\n', from);
    yield end < 0 ? text.slice(from) : text.slice(from, end);
    if (end < 0) return;
    from = end + 1;
  }
}

/**
 * Finds a package by name. A name without an architecture means the machine's own architecture.
 * @returns null if dpkg's database does not contain the package
 */
export function findPackage(database: DpkgDatabase, name: string): DpkgPackage | null {
  const [baseName = '', architecture] = name.split(':');
  for (const candidate of [architecture ?? database.native, 'all']) {
    if (architecture !== undefined && candidate === 'all' && architecture !== database.native && architecture !== 'all')
      continue;
    const found = database.packages.get(`${baseName}:${candidate}`);
    if (found !== undefined && found.state !== 'not-installed') return found;
  }
  return null;
}

/** Reports whether the package needs no repair. */
export const isIntact = ({ state, reinstallRequired }: DpkgPackage): boolean =>
  !reinstallRequired && (state === 'installed' || state === 'config-files' || state === 'not-installed');

function read(path: string): string | null {
  try {
    if (statSync(path).size > maxBytes)
      throw new HostFailure(`${path} is larger than ${maxBytes} bytes and was not read`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
    throw hostFailure(error, `read ${path}`);
  }
}

/** Returns the update file names, in the order in which dpkg wrote them. */
function namesOf(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => /^\d+$/.test(name))
      .sort();
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw hostFailure(error, `list ${directory}`);
  }
}

const info = '/var/lib/dpkg/info';

/** Returns the paths that dpkg lists for a package; empty if unknown. */
export const pathsOf = ({ name, architecture }: Pick<DpkgPackage, 'name' | 'architecture'>): string[] =>
  (read(`${info}/${name}:${architecture}.list`) ?? read(`${info}/${name}.list`) ?? '').split('\n').filter(Boolean);

/** Returns when the package was unpacked, in milliseconds since the epoch, or 0 if unknown. */
export const unpackedAt = ({ name, architecture }: Pick<DpkgPackage, 'name' | 'architecture'>): number =>
  bornAt(`${info}/${name}:${architecture}.list`) ?? bornAt(`${info}/${name}.list`) ?? 0;
/** Returns when dpkg last changed its database, in milliseconds since the epoch, or 0 if unknown. */
export const dpkgChangedAt = (): number => statSync(status, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** Returns the given paths that belong to a known package. */
export async function ownedPaths(paths: ReadonlySet<string>): Promise<Set<string>> {
  const owned = new Set<string>();
  if (paths.size === 0) return owned;
  for (const name of namesIn(info)) {
    if (!name.endsWith('.list')) continue;
    for (const path of lines(read(`${info}/${name}`) ?? '')) if (paths.has(path)) owned.add(path);
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return owned;
}

/**
 * Reports whether a version satisfies a declared one: `20.1` exactly, a pattern such as `20.*`, or a minimum `>=20.1`.
 */
export function isVersion(range: string, version: string): boolean {
  const bound = lowerBound(range);
  return bound === null ? matchesPattern(range, version) : compareVersions(version, bound) >= 0;
}
