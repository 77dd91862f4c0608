import { setImmediate } from 'node:timers/promises';
import { HostFailure } from '../../host/failure.ts';
import type { Ownership } from '../../host/files/inspect.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import { linkStatus } from '../../host/read-system.ts';
import { folderOf, trustedPath } from '../archive/place.ts';
import type { Machine } from '../provider/provider.ts';
import type { ScriptAccount } from '../script/launch.ts';
import { declaredPackages, type OtherFile, readOrFault } from './declared-packages.ts';
import {
  type Distribution,
  isEditable,
  maxDistributions,
  type Need,
  needsIn,
  requirementLines,
  withRequirements,
} from './distributions.ts';
import { isBare, pythonIn } from './environment.ts';
import { concernsExtra, evaluateMarker, type MarkerVariables, markerVariables } from './markers.ts';
import { parseRequirement, type Requirement } from './requirements-file.ts';
import { decideRemoval, type RequirementsRemoval } from './requirements-removal.ts';
import {
  type DeclaredRequirements,
  environmentOf,
  lookAtEnvironment,
  packageState,
  type RequirementsBefore,
  type SeenEnvironment,
  type SeenPipPackage,
} from './seen.ts';
import { satisfies } from './version-specifiers.ts';

/** A requirement that the virtual environment does not satisfy. */
export interface Unmet {
  name: string;
  /** Installed version, or why it does not count; null if the package is not installed. */
  found: string | null;
  /** The requirement, such as `tool>=2`. */
  wanted: string;
}

export interface SeenRequirements
  extends Pick<
    SeenPipPackage,
    'environment' | 'isInterrupted' | 'broken' | 'isParentMissing' | 'unsafe' | 'missing' | 'isBare' | 'stale'
  > {
  /** Lines for pip; null if the requirements file does not exist or cannot be used. Not journaled. */
  lines: string[] | null;
  /** Why the requirements file cannot be used; null if it can, or does not exist. */
  fault: string | null;
  /** Why another user could choose the packages; null if none could. */
  unsafeFile: string | null;
  /** Names of the packages that the file lists for this machine. */
  names: string[];
  unmet: Unmet[];
  /**
   * Packages with missing files, with the line that installs them again: those whose version satisfies the requirement,
   * or those that a removal replaces or uninstalls and that pip cannot use.
   */
  damaged: { name: string; line: string; file: string }[];
  /** The first package that pip must not replace, and why; null if there is none. */
  unmanaged: { name: string; why: string } | null;
  versions: Record<string, string>;
  /** Null unless the resource is removed. */
  removal: RequirementsRemoval | null;
  /** Only for a removal: the requirements files of other resources. */
  files: OtherFile[];
  /** The changes of a removal if these files list no package; null if there are no such files. */
  unlisted: RequirementsRemoval | null;
}

const requireHashes = '--require-hashes';
/** Maximum size of the lists of files of all packages together, in bytes. */
const maxAllRecords = 64 * 1024 * 1024;

/**
 * @param before null unless the resource is removed
 * @throws HostFailure if the environment has too much to read, or a resource may write a secret into the file
 */
export async function lookAtRequirements(
  resource: DeclaredRequirements,
  machine: Machine,
  before: RequirementsBefore | null,
): Promise<SeenRequirements> {
  const { walk } = machine;
  const path = resource.body.requirements;
  if (before === null && machine.mayContainSecret(path))
    throw new HostFailure(`${path} may contain a secret, but plans show its lines: write it without secrets`);
  const found = await lookAtEnvironment(resource, machine);
  const { environment, isInterrupted, broken, isParentMissing, missing, all, isRoot, account } = found;
  const isPresent = environment === 'present';
  const { file, fault } = before === null ? readOrFault(walk, path) : { file: null, fault: null };
  const variables = markerVariables(isPresent ? pythonIn(walk, environmentOf(resource)) : null);
  const requirements = file?.requirements ?? [];
  const applicable = requirements.filter(
    ({ marker }) => marker === null || evaluateMarker(marker, variables) !== false,
  );
  // pip requires hashes of all packages if one has a hash. A damaged package is installed without the other lines.
  const needsHashes = file !== null && (file.requiresHashes || requirements.some(({ hasHash }) => hasHash));
  return {
    ...{ environment, isInterrupted, broken, isParentMissing, missing, fault },
    names: [...new Set(applicable.map(({ name }) => name))],
    unsafe: found.unsafe ?? (before === null && isRoot ? whyUnsafeFolder(walk, path) : null),
    unsafeFile: file === null || (account === null && !isRoot) ? null : whyUnsafeFile(path, file, account),
    isBare: before !== null && isPresent && !isInterrupted && isBare(walk, environmentOf(resource)),
    lines: file === null ? null : [...(needsHashes ? [requireHashes] : []), ...requirements.map(({ line }) => line)],
    versions: Object.fromEntries(all.map(({ name, version }) => [name, version])),
    ...(before === null
      ? {
          ...(await compare(resource, machine, found, applicable, variables)),
          removal: null,
          files: [],
          unlisted: null,
        }
      : removalState(resource, machine, found, before)),
  };
}

/** Returns the journaled form, without the lines of the file. */
export const briefRequirements = (seen: SeenRequirements): SeenRequirements => ({
  ...seen,
  lines: seen.lines === null ? null : [],
  damaged: seen.damaged.map((one) => ({ ...one, line: '' })),
});

/** Returns the lines that install damaged packages again. */
export const linesOfDamaged = ({ lines, damaged }: Pick<SeenRequirements, 'lines' | 'damaged'>): string[] => [
  ...(lines?.[0] === requireHashes ? [requireHashes] : []),
  ...damaged.map(({ line }) => line),
];

/** Returns what a removal changes, and the packages that pip cannot use and must therefore install again before. */
function removalState(
  resource: DeclaredRequirements,
  machine: Machine,
  found: SeenEnvironment,
  before: RequirementsBefore,
): Pick<SeenRequirements, 'unmet' | 'damaged' | 'unmanaged' | 'stale' | 'removal' | 'files' | 'unlisted'> {
  const { walk } = machine;
  const { all, root, site, isInterrupted: interrupted } = found;
  const folder = `${root}/${site}`;
  const unmanaged = new Set(all.filter((one) => one.isLegacy || isEditable(walk, folder, one)));
  const { named, all: declared, files } = declaredPackages(resource, before.dependencies, machine);
  const input = {
    needs: site === null ? [] : needsIn(walk, folder, all),
    installed: all.filter((one) => !unmanaged.has(one)),
    unmanaged: [...unmanaged].map(({ name }) => name),
    before,
    site: site ?? '',
  };
  const removal = decideRemoval({ ...input, declared });
  const unlisted = files.length === 0 ? null : decideRemoval({ ...input, declared: named });
  const damaged: SeenRequirements['damaged'] = [];
  const stale: string[] = [];
  const installed = Map.groupBy(all, ({ name }) => name);
  for (const { name, from } of [...removal.restore, ...removal.uninstall]) {
    const own = installed.get(name);
    if (own === undefined || from === null || site === null) continue;
    const state = packageState(resource, machine, { own, site, root, interrupted });
    if (state.stale.length === 0) continue;
    stale.push(...state.stale);
    damaged.push({ name, line: `${name}==${from}`, file: state.missingFile ?? '' });
  }
  return { unmet: [], damaged, unmanaged: null, stale, removal, files, unlisted };
}

/** Returns why another user could replace the file from which root installs packages; null if none could. */
function whyUnsafeFolder(walk: PathWalk, path: string): string | null {
  try {
    trustedPath(walk, folderOf(path), 'null');
    return null;
  } catch (error) {
    if (error instanceof HostFailure) return `${error.message}, or declare \`user\``;
    throw error;
  }
}

/**
 * Returns why a user other than root could choose the packages of an account; null if none could.
 * @param account the account that runs pip; null for the agent's own
 */
export function whyUnsafeFile(
  path: string,
  { uid, mode }: Pick<Ownership, 'uid' | 'mode'>,
  account: Pick<ScriptAccount, 'uid' | 'name'> | null,
): string | null {
  const isOwn = uid === 0 || uid === (account?.uid ?? process.geteuid?.());
  // The primary group of the account may have other members, and the bits of a group may be the mask of an ACL.
  if (isOwn && (mode & 0o022) === 0) return null;
  return account === null || account.uid === 0
    ? `pip reads ${path}: make it a file that only root can write, or declare \`user\``
    : `pip of ${account.name} reads ${path}: make it a file that only root and ${account.name} can write`;
}

/** Compares the requirements with the installed packages. */
async function compare(
  resource: DeclaredRequirements,
  machine: Machine,
  { all, root, site, isInterrupted }: SeenEnvironment,
  requirements: readonly Requirement[],
  variables: MarkerVariables,
): Promise<Pick<SeenRequirements, 'unmet' | 'damaged' | 'unmanaged' | 'stale'>> {
  const unmet: Unmet[] = [];
  const damaged: SeenRequirements['damaged'] = [];
  const stale: string[] = [];
  let unmanaged: SeenRequirements['unmanaged'] = null;
  const folder = `${root}/${site}`;
  const installed = Map.groupBy(all, ({ name }) => name);
  let size = 0;
  for (const [name, group] of Map.groupBy(requirements, (requirement) => requirement.name)) {
    const own = installed.get(name) ?? [];
    const [first] = own;
    if (first === undefined || site === null) {
      unmet.push(...group.map(({ shown }) => ({ name, found: null, wanted: shown })));
      continue;
    }
    // Reading the files of many packages must not block the agent.
    await setImmediate();
    size += own.reduce((sum, { entry }) => sum + (linkStatus(`${folder}/${entry}/RECORD`)?.size ?? 0), 0);
    if (size > maxAllRecords)
      throw new HostFailure(`${folder} has more metadata than a virtual environment should have`);
    const state = packageState(resource, machine, { own, site, root, interrupted: isInterrupted });
    stale.push(...state.stale);
    if (state.unmanaged !== null) unmanaged ??= { name, why: state.unmanaged };
    const { version } = first;
    const lacking =
      state.unmanaged === null && state.missingFile === null
        ? lackingForExtras(group, () => requirementLines(machine.walk, folder, first), all, variables)
        : undefined;
    for (const { specifiers, shown: wanted, hasHash, line } of group) {
      if (state.unmanaged !== null) unmet.push({ name, found: state.unmanaged, wanted });
      else if (!satisfies(version, specifiers)) unmet.push({ name, found: version, wanted });
      else if (state.missingFile !== null)
        damaged.push({ name, line: hasHash ? line : `${name}==${version}`, file: state.missingFile });
      else if (lacking !== undefined) unmet.push({ name, found: `${version} without ${lacking}`, wanted });
    }
  }
  return { unmet, damaged, unmanaged, stale };
}

/**
 * Returns the first package that the extras of requirements need and that is not installed.
 * @param read returns the `Requires-Dist` fields of the package
 */
export function lackingForExtras(
  requirements: readonly Pick<Requirement, 'extras'>[],
  read: () => readonly string[],
  all: readonly Pick<Distribution, 'name' | 'version'>[],
  variables: MarkerVariables,
): string | undefined {
  const extras = new Set(requirements.flatMap((requirement) => requirement.extras));
  if (extras.size === 0) return undefined;
  const installed = Map.groupBy(all, ({ name }) => name);
  for (const line of read()) {
    const needed = parseRequirement(line);
    if (typeof needed === 'string' || needed.marker === null || !concernsExtra(needed.marker)) continue;
    const { marker, name, specifiers, shown } = needed;
    if (evaluateMarker(marker, variables, extras) !== true) continue;
    if (!installed.get(name)?.some(({ version }) => satisfies(version, specifiers))) return shown;
  }
  return undefined;
}

export async function rememberRequirements(
  resource: DeclaredRequirements,
  seen: SeenRequirements,
  before: RequirementsBefore | null,
  machine: Machine,
): Promise<RequirementsBefore> {
  return recordOf(before, seen, await currentNeeds(resource, machine));
}

/** Adds the dependencies of the new versions to the record, because the former versions may not need them. */
export const rememberDependencies = async (
  resource: DeclaredRequirements,
  before: RequirementsBefore,
  machine: Machine,
): Promise<RequirementsBefore> => withDependencies(before, await currentNeeds(resource, machine));

async function currentNeeds(resource: DeclaredRequirements, machine: Machine): Promise<Need[]> {
  const { site, root, all } = await lookAtEnvironment(resource, machine);
  return site === null ? [] : needsIn(machine.walk, `${root}/${site}`, all);
}

/**
 * Adds the names in the file, the versions of those that someone else installed since the first change, and the current
 * dependencies, which the next versions may not need.
 */
export function recordOf(
  before: RequirementsBefore | null,
  { environment, versions, names }: Pick<SeenRequirements, 'environment' | 'versions' | 'names'>,
  needs: readonly Need[],
): RequirementsBefore {
  const known = before ?? { environment, versions, names: [], dependencies: [], automatic: [] };
  const brought = new Set(withDependencies(known, needs).dependencies);
  const isOthers = (name: string): boolean => Object.hasOwn(versions, name) && !brought.has(name);
  const others = Object.fromEntries(names.filter(isOthers).map((name) => [name, versions[name] ?? '']));
  const all = [...new Set([...known.names, ...names])].slice(0, maxDistributions);
  const added = new Set(Object.keys(before === null ? versions : others));
  const automatic = needs.filter(({ name, isDependency }) => isDependency && added.has(name)).map(({ name }) => name);
  return withDependencies(
    {
      ...known,
      versions: { ...others, ...known.versions },
      names: all,
      automatic: [...new Set([...known.automatic, ...automatic])],
    },
    needs,
  );
}

function withDependencies(before: RequirementsBefore, needs: readonly Need[]): RequirementsBefore {
  const dependencies = new Set([...before.dependencies, ...withRequirements(needs, new Set(before.names))]);
  return { ...before, dependencies: [...dependencies].slice(0, 2 * maxDistributions) };
}
