import { isVersionRestored } from './diff.ts';
import { type Distribution, type Need, withRequirements } from './distributions.ts';
import { ofEnvironment, type RequirementsBefore } from './seen.ts';

/** Decides what the removal of a requirements file changes in the virtual environment. */

export interface RequirementsRemoval {
  /** Packages that get their former version again, with the current one, or null if it is not installed. */
  restore: { name: string; from: string | null; to: string }[];
  /** Packages to uninstall: those of the file, and their dependencies that nothing else needs. */
  uninstall: { name: string; from: string }[];
  /** Packages of the file that stay because others may need them. */
  kept: string[];
  /**
   * Packages that pip marks as requested, and that were dependencies or become dependencies, with the path of the mark
   * below the virtual environment.
   */
  marks: { name: string; path: string }[];
  /** Names of the file's packages and of all their dependencies, in all versions that are known. */
  dependencies: string[];
}

export interface RemovalInput {
  needs: readonly Need[];
  /** Packages that pip can replace and uninstall. */
  installed: readonly Distribution[];
  /** Names of the other packages. */
  unmanaged: readonly string[];
  before: RequirementsBefore;
  /** Names of packages that other resources declare. */
  declared: readonly string[];
  /** Path of `site-packages` below the virtual environment. */
  site: string;
}

export function decideRemoval({
  needs,
  installed,
  unmanaged,
  before,
  declared,
  site,
}: RemovalInput): RequirementsRemoval {
  const unlisted = ofEnvironment.filter((name) => name === 'pip' || !before.names.includes(name));
  const others = new Set([...declared, ...unmanaged, ...unlisted]);
  const own = new Set(before.names.filter((name) => !others.has(name)));
  const possible = new Set([...before.dependencies, ...withRequirements(needs, new Set(before.names))]);
  // A former version might not satisfy the packages of other resources.
  const shared = withRequirements(needs, new Set(declared));
  const versions = new Map(installed.map(({ name, version }) => [name, version]));
  const restore = [...new Set([...own, ...possible])].flatMap((name) => {
    const to = Object.hasOwn(before.versions, name) ? before.versions[name] : undefined;
    const from = versions.get(name) ?? null;
    if (to === undefined || to === '' || others.has(name)) return [];
    // pip never uninstalls a dependency, so a missing one was uninstalled by someone else.
    const isOther = from === null ? !own.has(name) : shared.has(name);
    return isOther || (from !== null && isVersionRestored(from, to)) ? [] : [{ name, from, to }];
  });
  const keeps = (name: string): boolean => others.has(name) || Object.hasOwn(before.versions, name);
  const candidates = new Set([...own].filter((name) => versions.has(name) && !keeps(name)));
  const needed = neededWithout(needs, candidates, keeps);
  const kept = [...candidates].filter((name) => needed.has(name));
  // With an old pip, which does not record which packages were requested, every package looks like a dependency.
  const isRecorded = needs.some(({ name, isRequested }) => isRequested && !ofEnvironment.includes(name));
  const orphans = [...possible].filter((name) => isRecorded && versions.has(name) && !candidates.has(name));
  const isMarked = new Set(needs.filter(({ isRequested }) => isRequested).map(({ name }) => name));
  const isRestored = new Set(restore.map(({ name }) => name));
  const wasAutomatic = new Set(before.automatic.filter((name) => possible.has(name) && !others.has(name)));
  const becomesDependency = (name: string): boolean =>
    candidates.has(name) ? needed.has(name) : wasAutomatic.has(name) && !isRestored.has(name);
  return {
    restore,
    uninstall: [...candidates, ...orphans]
      .filter((name) => !needed.has(name))
      .map((name) => ({ name, from: versions.get(name) ?? '' })),
    kept,
    dependencies: [...possible],
    marks: installed
      .filter(({ name }) => isMarked.has(name) && becomesDependency(name))
      .map(({ name, entry }) => ({ name, path: `${site}/${entry}/REQUESTED` })),
  };
}

/** Returns the packages that remain without the candidates: those that nothing else brought, and their dependencies. */
function neededWithout(
  needs: readonly Need[],
  candidates: ReadonlySet<string>,
  keeps: (name: string) => boolean,
): Set<string> {
  const roots = needs.filter(({ name, isDependency }) => !candidates.has(name) && (!isDependency || keeps(name)));
  return withRequirements(needs, new Set(roots.map(({ name }) => name)));
}
