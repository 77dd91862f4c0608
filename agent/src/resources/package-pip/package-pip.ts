import { pythonVersion } from '@muster/protocol/python-version';
import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Machine } from '../provider/provider.ts';
import { expectKnown } from './declared-packages.ts';
import {
  diffPipPackage,
  diffPipPackageRemoval,
  hasEnvironmentToRemove,
  isVersionMet,
  isVersionRestored,
} from './diff.ts';
import { maxDistributions } from './distributions.ts';
import { marks } from './environment.ts';
import {
  briefRequirements,
  lookAtRequirements,
  rememberDependencies,
  rememberRequirements,
  type SeenRequirements,
} from './requirements.ts';
import { installRequirements, removeRequirements } from './requirements-apply.ts';
import { diffRequirements, diffRequirementsRemoval } from './requirements-diff.ts';
import { runPip } from './run-pip.ts';
import {
  type Declared,
  type DeclaredPackage,
  environmentOf,
  hasRequirements,
  look,
  type PipPackageBefore,
  type RequirementsBefore,
  type SeenPipPackage,
} from './seen.ts';

type Seen = SeenPipPackage | SeenRequirements;
type Before = PipPackageBefore | RequirementsBefore;

/** A package of Python in a virtual environment, or the packages of a requirements file. */
export const packagePip = defineProvider<'package-pip', Seen, Before>({
  type: 'package-pip',
  fields: {
    ...{ name: 'text?', requirements: 'text?', virtualenv: 'text', version: 'text?', user: 'text?' },
    ...{ index_url: 'text?', ensure: 'text?' },
  },
  watched: (resource) => [
    ...['pyvenv.cfg', 'bin/python3', marks.work, marks.partial].map((name) => `${environmentOf(resource)}/${name}`),
    ...(hasRequirements(resource) ? [resource.body.requirements] : []),
  ],
  // A removal depends on the requirements files of other resources.
  reads: (resource) => ['/', ...(hasRequirements(resource) ? [resource.body.requirements] : [])],
  brings: () => ['programs'],

  check(resource) {
    const { name, requirements, version, index_url: index, ensure } = resource.body;
    checkPath(environmentOf(resource));
    if (requirements != null) {
      checkPath(requirements);
      if (name != null || version != null || ensure === 'absent')
        throw new HostFailure('`requirements` cannot be combined with `name`, `version`, or `ensure: absent`');
    } else if (name == null) throw new HostFailure('one of `name` and `requirements` is required');
    // pip would read other names as options, files, or URLs, and the file with the index as several lines.
    else if (!/^[A-Za-z0-9][\w.-]*$/.test(name))
      throw new HostFailure(`${JSON.stringify(name)} is not the name of a package`);
    if (version != null && !/^[A-Za-z0-9.!+_-]+$/.test(version)) throw new HostFailure('`version` must be one version');
    if (index != null && !/^https?:\/\/[^\s"'`\\$#?]+$/.test(index))
      throw new HostFailure('`index_url` must be an http or https URL');
  },

  observe: (resource, _circumstances, machine) =>
    hasRequirements(resource) ? lookAtRequirements(resource, machine, null) : look(named(resource), machine, null),
  diff: (resource, seen, circumstances) =>
    hasRequirements(resource)
      ? diffRequirements(resource, seen as SeenRequirements, circumstances)
      : diffPipPackage(named(resource), seen as SeenPipPackage, circumstances),
  inBrief: (seen) => JSON.parse(JSON.stringify('lines' in seen ? briefRequirements(seen) : seen)),
  weight: (seen) => ('lines' in seen ? (seen.lines ?? []).reduce((sum, { length }) => sum + length, 0) : 0),
  remember: (resource, seen, _difference, before, machine) =>
    hasRequirements(resource)
      ? rememberRequirements(resource, seen as SeenRequirements, before as RequirementsBefore | null, machine)
      : rememberPackage(named(resource), seen as SeenPipPackage, before as PipPackageBefore | null, machine),

  async apply(resource, seen, _difference, machine) {
    if (hasRequirements(resource)) await installRequirements(resource, seen as SeenRequirements, machine);
    else if (resource.body.ensure === 'absent') await uninstall(named(resource), seen as SeenPipPackage, [], machine);
    else await install(named(resource), seen as SeenPipPackage, resource.body.version ?? null, machine);
    return {};
  },

  async afterwards(resource, before, machine) {
    if (hasRequirements(resource)) return rememberDependencies(resource, before as RequirementsBefore, machine);
    const known = before as PipPackageBefore;
    return withDependencies(known, await look(named(resource), machine, known));
  },

  observeForRemoval: (resource, before, machine) =>
    hasRequirements(resource)
      ? lookAtRequirements(resource, machine, before as RequirementsBefore)
      : look(named(resource), machine, before as PipPackageBefore),
  diffRemoval: (resource, before, seen, circumstances) =>
    hasRequirements(resource)
      ? diffRequirementsRemoval(resource, before as RequirementsBefore, seen as SeenRequirements, circumstances)
      : diffPipPackageRemoval(named(resource), before as PipPackageBefore, seen as SeenPipPackage, circumstances),

  async remove(resource, before, seen, _difference, machine) {
    if (hasRequirements(resource))
      await removeRequirements(resource, before as RequirementsBefore, seen as SeenRequirements, machine);
    else await removePackage(named(resource), before as PipPackageBefore, seen as SeenPipPackage, machine);
    return {};
  },
});

/** `check` refuses a resource with neither a name nor requirements. */
const named = (resource: Declared): DeclaredPackage => resource as DeclaredPackage;

async function rememberPackage(
  resource: DeclaredPackage,
  { version, environment, packages }: SeenPipPackage,
  before: PipPackageBefore | null,
  machine: Machine,
): Promise<PipPackageBefore> {
  const known = before ?? { version, environment, packages, dependencies: [] };
  // Records the current dependencies, because the next version may not need them.
  return version === null ? known : withDependencies(known, await look(resource, machine, known));
}

async function removePackage(
  resource: DeclaredPackage,
  before: PipPackageBefore,
  seen: SeenPipPackage,
  machine: Machine,
): Promise<void> {
  if (before.version === null && seen.version !== null && seen.neededBy.length > 0) {
    // The package becomes a dependency, so that it is removed with the last package that needs it.
    const stale = seen.metadata === null ? [] : [`${seen.metadata}/REQUESTED`];
    await runPip(resource, { action: 'uninstall', stale }, seen, machine);
    return;
  }
  if (before.version === null) {
    if (seen.version !== null || seen.isInterrupted || seen.orphans.length > 0)
      await uninstall(resource, seen, seen.orphans, machine);
  } else if (seen.version === null || !isVersionRestored(seen.version, before.version) || isDamaged(seen))
    await install(resource, seen, before.version, machine, true);
  // The dependencies of the restored version are known only at this point.
  const now = await look(resource, machine, withDependencies(before, seen));
  expectKnown(now);
  if (now.orphans.length > 0) await runPip(resource, { action: 'uninstall', names: now.orphans }, now, machine);
  if (before.version === null && hasEnvironmentToRemove(before, now)) {
    const removesDirectory = before.environment === 'absent';
    await runPip(resource, { action: 'clear', removesDirectory }, now, machine);
  }
}

const withDependencies = (before: PipPackageBefore, { dependencies }: SeenPipPackage): PipPackageBefore => ({
  ...before,
  dependencies: [...new Set([...before.dependencies, ...dependencies])].slice(0, maxDistributions),
});

const isDamaged = ({ isInterrupted, missingFile }: SeenPipPackage): boolean => isInterrupted || missingFile !== null;

/**
 * Installs the declared version, or repairs the installed version if it already satisfies the declaration.
 * @param isExact whether the local part of the version must match as well
 */
async function install(
  resource: DeclaredPackage,
  seen: SeenPipPackage,
  wanted: string | null,
  machine: Machine,
  isExact = false,
): Promise<void> {
  const isMet = (installed: string) =>
    isExact && wanted !== null ? isVersionRestored(installed, wanted) : isVersionMet(installed, wanted);
  const again = seen.version !== null && isMet(seen.version);
  const chosen = again ? seen.version : wanted;
  // pip compares an exact version as text, so the version is normalized.
  const version = isExact && chosen !== null ? (pythonVersion(chosen)?.normal ?? chosen) : chosen;
  await runPip(resource, { action: 'install', version, isExact, again, stale: seen.stale }, seen, machine);
  const now = await look(resource, machine, null);
  if (now.version === null || !isMet(now.version))
    throw new HostFailure(
      `pip succeeded, but ${now.version === null ? 'did not install the package' : `installed the version ${now.version}`}`,
    );
  if (now.missingFile !== null)
    throw new HostFailure(`pip succeeded, but the package lists a file that is missing: ${now.missingFile}`);
}

/** Uninstalls the package and its orphans. If pip has no list of the package's files, first reinstalls the package. */
async function uninstall(
  resource: DeclaredPackage,
  seen: SeenPipPackage,
  orphans: readonly string[],
  machine: Machine,
): Promise<void> {
  if (seen.version !== null && seen.stale.length > 0) await install(resource, seen, seen.version, machine);
  const names = [...(seen.version === null ? [] : [resource.body.name]), ...orphans];
  await runPip(resource, { action: 'uninstall', names }, seen, machine);
  const now = await look(resource, machine, null);
  if (now.version !== null) throw new HostFailure('pip succeeded, but did not uninstall the package');
}
