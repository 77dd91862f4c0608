import { posix } from 'node:path';
import type { ResolvedResource } from '@muster/protocol/module';
import { pythonName } from '@muster/protocol/python-version';
import { inspect } from '../../host/files/inspect.ts';
import type { Difference, Machine } from '../provider/provider.ts';
import type { ScriptAccount } from '../script/launch.ts';
import { prerequisitesOf } from '../script/prerequisites.ts';
import { declaredPackages, type OtherFile } from './declared-packages.ts';
import {
  type Distribution,
  dependenciesOf,
  distributionsIn,
  isEditable,
  isUsable,
  missingFile,
  neededBy,
  needsIn,
  orphansIn,
} from './distributions.ts';
import {
  type EnvironmentState,
  environmentState,
  hasCopies,
  isBare,
  isInterrupted,
  marks,
  sitePackagesOf,
  whyBroken,
  whyUnsafe,
} from './environment.ts';

/** A resource of this kind: one package, or the packages of a requirements file. */
export type Declared = ResolvedResource<'package-pip'>;
/** A resource that declares one package. */
export type DeclaredPackage = Declared & { body: { name: string } };
/** A resource that declares the packages of a requirements file. */
export type DeclaredRequirements = Declared & { body: { requirements: string } };

export const hasRequirements = (resource: Declared): resource is DeclaredRequirements =>
  resource.body.requirements != null;

/** State before the agent's first change. */
export type PipPackageBefore = {
  /** Null if the package was not installed. */
  version: string | null;
  environment: EnvironmentState;
  /** Names of all packages in the virtual environment. */
  packages: string[];
  /** Names of all dependencies of the versions that the agent replaced or removed. */
  dependencies: string[];
};

/** State before the agent's first change for a requirements file. */
export type RequirementsBefore = {
  environment: EnvironmentState;
  /** Versions of all packages in the virtual environment, by name, and of those that others installed later. */
  versions: Record<string, string>;
  /** Names in all versions of the requirements file that the agent applied. */
  names: string[];
  /** These names, and those of all dependencies of the versions that the agent installed, replaced, or removed. */
  dependencies: string[];
  /** Names of the packages in `versions` that pip had installed only as dependencies. */
  automatic: string[];
};

export interface SeenPipPackage {
  environment: EnvironmentState;
  /** Installed version; null if the package is not installed. */
  version: string | null;
  /** Why pip must not replace or remove the package, such as `an editable installation`; null if it may. */
  unmanaged: string | null;
  /** Whether a run of pip was interrupted. The other fields then describe the state before this run. */
  isInterrupted: boolean;
  /** A missing file of the package, or metadata that pip cannot use; null if the package is complete. */
  missingFile: string | null;
  /** Paths of metadata, below the virtual environment, that pip cannot use, and that an installation replaces. */
  stale: string[];
  /** Path of the metadata below the virtual environment; null if there is none that pip can use. */
  metadata: string | null;
  packages: string[];
  /** Why no package can be used, such as an interpreter that does not exist; null if packages can be used. */
  broken: string | null;
  /** Only for a removal: everything that the package needs, directly or through others. */
  dependencies: string[];
  /** Only for a removal: packages that pip installed as dependencies and that nothing will need. */
  orphans: string[];
  /** Only for a removal: packages that may need this one, at most 10. */
  neededBy: string[];
  /** Only for a removal: whether the package was requested, so that it is not only a dependency. */
  isRequested: boolean;
  /** Only for a removal: the requirements files of other resources. */
  files: OtherFile[];
  /** Only for a removal: the fields that differ if these files list no package. Null if there are no such files. */
  unlisted: Pick<SeenPipPackage, 'orphans' | 'neededBy'> | null;
  /** Only for a removal: whether the agent created the environment, and it contains nothing else. */
  isBare: boolean;
  /** Whether the directory in which to create the virtual environment does not exist. */
  isParentMissing: boolean;
  /** Why root must not run pip in the virtual environment; null if it may. */
  unsafe: string | null;
  missing: NonNullable<Difference['awaits']>;
}

export const environmentOf = ({ body }: Declared): string => body.virtualenv;

/**
 * Returns the prerequisites that pip needs to run: the interpreter of a virtual environment, or the one that creates
 * it.
 */
export const needsOf = ({ body: { user, virtualenv } }: Declared, environment: EnvironmentState) => ({
  program: environment === 'present' ? `${rootOf(virtualenv)}/bin/python3` : 'python3',
  ...(user == null ? {} : { user }),
});

/** Returns the directory with the last state of `bin` and `lib` that is known to be intact. */
const rootOf = (environment: string): string => (hasCopies(environment) ? `${environment}/${marks.work}` : environment);

/** The virtual environment, whichever of its packages a resource declares. */
export interface SeenEnvironment
  extends Pick<SeenPipPackage, 'environment' | 'isInterrupted' | 'broken' | 'isParentMissing' | 'unsafe' | 'missing'> {
  /** The environment, or the copies in it. */
  root: string;
  /** Path of `site-packages` below `root`; null if there is none. */
  site: string | null;
  /** All packages. */
  all: Distribution[];
  /** The account that runs pip; null for the agent's own one, and for one that does not exist. */
  account: ScriptAccount | null;
  /** Whether pip runs as root. */
  isRoot: boolean;
}

export async function lookAtEnvironment(resource: Declared, machine: Machine): Promise<SeenEnvironment> {
  const { walk } = machine;
  const path = environmentOf(resource);
  const { user } = resource.body;
  const environment = environmentState(walk, path);
  const isPresent = environment === 'present';
  const root = rootOf(path);
  const site = isPresent ? sitePackagesOf(walk, path, root) : null;
  const { account, missing } = await prerequisitesOf(needsOf(resource, environment), machine);
  const isRoot = user == null || account?.uid === 0;
  return {
    environment,
    root,
    site,
    account,
    isRoot,
    all: site === null ? [] : distributionsIn(walk, `${root}/${site}`),
    isInterrupted: isPresent && isInterrupted(path),
    broken: isPresent ? whyBroken(walk, path, root, site) : null,
    isParentMissing: environment === 'absent' && inspect(walk, posix.dirname(path), false).type === 'absent',
    unsafe: isRoot && environment !== 'other' ? whyUnsafe(walk, path, root, site) : null,
    missing,
  };
}

/** @param before null unless the resource is removed */
export async function look(
  resource: DeclaredPackage,
  machine: Machine,
  before: PipPackageBefore | null,
): Promise<SeenPipPackage> {
  const { all, root, site, account: _, isRoot: __, ...seen } = await lookAtEnvironment(resource, machine);
  const own = all.filter(({ name }) => name === pythonName(resource.body.name));
  const version = own.find(({ isLegacy }) => !isLegacy)?.version ?? null;
  const isPresent = seen.environment === 'present';
  const interrupted = seen.isInterrupted;
  return {
    ...seen,
    version,
    ...(site === null
      ? { unmanaged: null, missingFile: null, stale: [], metadata: null }
      : packageState(resource, machine, { own, site, root, interrupted })),
    packages: all.map(({ name }) => name),
    ...(before === null || site === null
      ? { dependencies: [], orphans: [], neededBy: [], isRequested: false, files: [], unlisted: null }
      : usesOf(resource, machine, { all, site: `${root}/${site}`, before })),
    isBare:
      before !== null && isPresent && version === null && !interrupted && isBare(machine.walk, environmentOf(resource)),
  };
}

interface Found {
  own: Distribution[];
  /** Path of `site-packages` below `root`. */
  site: string;
  root: string;
  interrupted: boolean;
}

export function packageState(
  resource: Declared,
  { walk }: Machine,
  { own, site, root, interrupted }: Found,
): Pick<SeenPipPackage, 'unmanaged' | 'missingFile' | 'stale' | 'metadata'> {
  const legacy = own.find(({ isLegacy }) => isLegacy);
  if (legacy !== undefined) {
    const how = legacy.entry.endsWith('.egg-link') ? 'an editable installation' : 'an installation by setup.py';
    return { unmanaged: how, missingFile: null, stale: [], metadata: null };
  }
  const folder = `${root}/${site}`;
  if (own.some((one) => isEditable(walk, folder, one)))
    return { unmanaged: 'an editable installation', missingFile: null, stale: [], metadata: null };
  const unusable = own.length > 1 ? own : own.filter((one) => !isUsable(walk, folder, one));
  const [first] = own;
  const missing =
    first === undefined || interrupted
      ? undefined
      : (missingFile(walk, environmentOf(resource), folder, first) ?? unusable[0]?.entry);
  return {
    unmanaged: null,
    missingFile: missing?.slice(0, 200) ?? null,
    stale: unusable.map(({ entry }) => `${site}/${entry}`),
    metadata: first === undefined || unusable.length > 0 ? null : `${site}/${first.entry}`,
  };
}

/** Packages that a new virtual environment may already contain. */
export const ofEnvironment: readonly string[] = ['pip', 'setuptools', 'wheel'];

/** Returns the parts of the state that only a removal needs. */
function usesOf(
  resource: DeclaredPackage,
  machine: Machine,
  { all, site, before }: { all: Distribution[]; site: string; before: PipPackageBefore },
): Pick<SeenPipPackage, 'dependencies' | 'orphans' | 'neededBy' | 'isRequested' | 'files' | 'unlisted'> {
  const own = pythonName(resource.body.name);
  const declared = declaredPackages(resource, [own], machine);
  const needs = needsIn(machine.walk, site, all);
  const dependencies = dependenciesOf(needs, own);
  const possible = new Set([...before.dependencies, ...dependencies]);
  // With an old pip, which does not record which packages were requested, every package looks like a dependency.
  const isRecorded = needs.some(({ name, isRequested }) => isRequested && !ofEnvironment.includes(name));
  const isRestored = before.version !== null;
  const usesWith = (names: readonly string[]): Pick<SeenPipPackage, 'orphans' | 'neededBy'> => {
    const kept = new Set([...before.packages, ...names, ...ofEnvironment, ...(isRestored ? [own] : [])]);
    const orphans = isRecorded
      ? orphansIn(needs, isRestored ? null : own, kept).filter((name) => possible.has(name))
      : [];
    return { orphans, neededBy: isRestored ? [] : neededBy(needs, own, orphans).slice(0, 10) };
  };
  return {
    dependencies,
    ...usesWith(declared.all),
    isRequested: !isRestored && (needs.find(({ name }) => name === own)?.isRequested ?? false),
    files: declared.files,
    unlisted: declared.files.length === 0 ? null : usesWith(declared.named),
  };
}
