import { posix } from 'node:path';
import { isSamePythonVersion, pythonName } from '@muster/protocol/python-version';
import { HostFailure } from '../../host/failure.ts';
import { listDirectory } from '../../host/files/inspect.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import { readStart } from '../../host/files/read-start.ts';
import { linkStatus } from '../../host/read-system.ts';

/** Reads the packages in a directory `site-packages`. Its owner may write anything there, so every read is bounded. */

/** An installed package, by the name of its metadata. */
export interface Distribution {
  /** Normalized name, which is used for comparisons. */
  name: string;
  version: string;
  /** Name of the entry in `site-packages`. */
  entry: string;
  /** Whether setup.py or another old tool installed the package, so that pip cannot remove it. */
  isLegacy: boolean;
}

/** Data that decides whether a package is still needed. */
export interface Need {
  name: string;
  /** Whether the package was requested, so that it is not only a dependency. pip records this in a file. */
  isRequested: boolean;
  /** Whether pip installed the package only as a dependency of another package. */
  isDependency: boolean;
  /** Names of the installed packages that it requires, including under conditions such as an extra. */
  requires: string[];
}

const maxEntries = 20_000;
export const maxDistributions = 2000;
const maxMetadata = 512 * 1024;
/** Maximum size of METADATA of all packages together, in bytes. */
const maxAllMetadata = 32 * 1024 * 1024;
const maxRecord = 8 * 1024 * 1024;
const maxFiles = 20_000;
/** Maximum length of a line in RECORD, in characters. A path has at most 4095 bytes. */
const maxLine = 5000;

/**
 * Lists the packages in a directory.
 * @throws HostFailure if the directory has too many entries
 */
export function distributionsIn(walk: PathWalk, site: string): Distribution[] {
  const entries = listDirectory(walk, site, maxEntries);
  const found = entries?.sort().flatMap((entry) => distributionOf(entry) ?? []);
  if (found === undefined || found.length > maxDistributions)
    throw new HostFailure(`${site} has more entries than a virtual environment should have`);
  return found;
}

/** Parses the name of an entry, such as `requests-2.31.0.dist-info`; null for an entry that is not metadata. */
export function distributionOf(entry: string): Distribution | null {
  const suffix = ['.dist-info', '.egg-info', '.egg-link'].find((end) => entry.endsWith(end));
  if (suffix === undefined || entry.length > 255) return null;
  const isLegacy = suffix !== '.dist-info';
  const [name = '', version = '', ...rest] = entry.slice(0, -suffix.length).split('-');
  const isWhole = /^[A-Za-z0-9][A-Za-z0-9._]*$/.test(name) && (isLegacy || (/^[\w.+!]+$/.test(version) && !rest[0]));
  // The name of the directory has "_" where the version has "-".
  return isWhole
    ? { name: pythonName(name), version: isLegacy ? '' : version.replaceAll('_', '-'), entry, isLegacy }
    : null;
}

/** Reports whether metadata is a directory. The owner may put a file or a link there, below which nothing can be read. */
const isDirectory = (site: string, { entry }: Distribution): boolean =>
  linkStatus(`${site}/${entry}`)?.isDirectory() === true;

/** Reports whether the package is a link to a source tree, as `pip install --editable` makes it. */
export function isEditable(walk: PathWalk, site: string, one: Distribution): boolean {
  if (one.isLegacy || !isDirectory(site, one)) return false;
  const text = readStart(walk, `${site}/${one.entry}/direct_url.json`, 64 * 1024)?.toString('utf8');
  if (text === undefined) return false;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return false;
  }
  const info = typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>).dir_info : null;
  return typeof info === 'object' && info !== null && (info as Record<string, unknown>).editable === true;
}

/**
 * Returns the first file that a package lists and that does not exist.
 * @param environment directory of the virtual environment; files outside are not checked
 */
export function missingFile(walk: PathWalk, environment: string, site: string, one: Distribution): string | undefined {
  const { entry } = one;
  if (!isDirectory(site, one)) return entry;
  const record = readStart(walk, `${site}/${entry}/RECORD`, maxRecord);
  if (record === null) return `${entry}/RECORD`;
  const metadata = `${entry}/METADATA`;
  return [metadata, ...recordedFiles(record.toString('utf8'), record.length === maxRecord)].find((file) => {
    const path = posix.join(site, file);
    // Reveals at most whether a path exists, and only to someone who wrote the path into the list.
    return path.startsWith(`${environment}/`) && linkStatus(path) === null;
  });
}

/**
 * Reports whether programs change the file after the installation: bytecode, which programs remove and rewrite, and the
 * marker of a requested package, which the agent removes.
 */
const isVolatile = (file: string): boolean => file.endsWith('.pyc') || file.endsWith('.dist-info/REQUESTED');

/**
 * Returns the files that RECORD lists, without volatile ones; at most 20,000.
 * @param isCut whether the last line may be incomplete
 */
export function recordedFiles(text: string, isCut = false): string[] {
  const lines = text.split('\n', maxFiles + 1);
  if (isCut || lines.length > maxFiles) lines.pop();
  return lines
    .filter((line) => line.length <= maxLine)
    .map((line) => {
      if (!line.startsWith('"')) return line.split(',', 1)[0] ?? '';
      return (/^"((?:[^"]|"")*)"/.exec(line)?.[1] ?? '').replaceAll('""', '"');
    })
    .filter((file) => file !== '' && !file.startsWith('/') && !isVolatile(file) && !file.includes('\0'));
}

/** Returns the fields of METADATA, with names in lower case, up to the empty line that ends them. */
function fieldsOf(metadata: string): [name: string, value: string][] {
  const fields: [string, string][] = [];
  for (const line of metadata.split('\n', maxEntries)) {
    if (line === '' || line === '\r') break;
    const colon = line.indexOf(':');
    if (colon > 0) fields.push([line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]);
  }
  return fields;
}

/** Returns the `Requires-Dist` fields of a package, such as `part>=1 ; extra == "more"`. */
export function requirementLines(walk: PathWalk, site: string, { entry }: Distribution): string[] {
  const metadata = readStart(walk, `${site}/${entry}/METADATA`, maxMetadata)?.toString('utf8') ?? '';
  return fieldsOf(metadata).flatMap(([field, value]) => (field === 'requires-dist' ? [value] : []));
}

/**
 * Returns the names in the `Requires-Dist` fields of METADATA.
 * @param installed names of the installed packages, each mapped to itself; other names are omitted. The result shares
 *   these strings, because the fields of many packages would otherwise take much memory.
 */
export function requirementsOf(metadata: string, installed: ReadonlyMap<string, string>): string[] {
  const names = fieldsOf(metadata).flatMap(([field, value]) => {
    const [name] = field === 'requires-dist' ? (/^[a-z0-9][a-z0-9._-]*/i.exec(value) ?? []) : [];
    const known = name === undefined ? undefined : installed.get(pythonName(name).replace(/-$/, ''));
    return known === undefined ? [] : [known];
  });
  return [...new Set(names)];
}

/**
 * Reports whether pip can use the metadata of a package: whether it lists the package's files, and METADATA names the
 * same package and version as its directory.
 */
export function isUsable(walk: PathWalk, site: string, one: Distribution): boolean {
  const { entry, name, version } = one;
  if (!isDirectory(site, one)) return false;
  if ((readStart(walk, `${site}/${entry}/RECORD`, 1)?.length ?? 0) === 0) return false;
  const fields = fieldsOf(readStart(walk, `${site}/${entry}/METADATA`, maxMetadata)?.toString('utf8') ?? '');
  const first = (wanted: string) => fields.find(([field]) => field === wanted)?.[1] ?? '';
  return pythonName(first('name')) === name && isSamePythonVersion(first('version'), version);
}

/**
 * Reads the data that decides whether packages are still needed.
 * @throws HostFailure if there is too much to read
 */
export function needsIn(walk: PathWalk, site: string, distributions: readonly Distribution[]): Need[] {
  const installed = new Map(distributions.map(({ name }) => [name, name]));
  let size = 0;
  return distributions.map((one) => {
    const { name } = one;
    const read = (file: string, limit: number) => readStart(walk, `${site}/${one.entry}/${file}`, limit);
    if (one.isLegacy || !isDirectory(site, one)) return { name, isRequested: false, isDependency: false, requires: [] };
    const isRequested = read('REQUESTED', 0) !== null;
    const installer = read('INSTALLER', 64)?.toString('latin1').trim();
    const metadata = read('METADATA', maxMetadata);
    size += metadata?.length ?? 0;
    if (size > maxAllMetadata)
      throw new HostFailure(`${site} has more metadata than a virtual environment should have`);
    return {
      name,
      isRequested,
      isDependency: installer === 'pip' && !isRequested,
      requires: requirementsOf(metadata?.toString('utf8') ?? '', installed),
    };
  });
}

/** Returns everything that a package needs, directly or through others, sorted; empty if it is not installed. */
export function dependenciesOf(needs: readonly Need[], name: string): string[] {
  const found = withRequirements(needs, new Set([name]));
  found.delete(name);
  return [...found].sort();
}

/** Adds what the packages need, directly or through others. */
export function withRequirements(needs: readonly Need[], names: Set<string>): Set<string> {
  const byName = new Map(needs.map((need) => [need.name, need]));
  // The loop also visits the names that it adds.
  for (const name of names) for (const other of byName.get(name)?.requires ?? []) names.add(other);
  return names;
}

/**
 * Returns the dependencies that nothing needs, sorted.
 * @param without name of a package that is about to be removed
 * @param kept names of packages that are kept even if nothing needs them
 */
export function orphansIn(needs: readonly Need[], without: string | null, kept: ReadonlySet<string>): string[] {
  const staying = needs.filter(({ name }) => name !== without);
  const roots = staying.filter(({ name, isDependency }) => !isDependency || kept.has(name)).map(({ name }) => name);
  const needed = withRequirements(staying, new Set(roots));
  return [...new Set(staying.map(({ name }) => name))].filter((name) => !needed.has(name)).sort();
}

/** Returns the packages that may need a package, except orphans, which nothing needs. */
export const neededBy = (needs: readonly Need[], name: string, orphans: readonly string[]): string[] =>
  needs
    .filter((need) => need.name !== name && need.requires.includes(name) && !orphans.includes(need.name))
    .map((need) => need.name)
    .sort();
