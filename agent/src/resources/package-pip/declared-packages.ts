import type { ResolvedResource } from '@muster/protocol/module';
import { pythonName } from '@muster/protocol/python-version';
import { HostFailure } from '../../host/failure.ts';
import type { PathWalk } from '../../host/files/path-walk.ts';
import type { Circumstances, Machine } from '../provider/provider.ts';
import { pythonIn } from './environment.ts';
import { evaluateMarker, markerVariables } from './markers.ts';
import { type RequirementsFile, readRequirements } from './requirements-file.ts';

/** Finds the packages that other resources declare in the same virtual environment, which a removal keeps. */

/** A requirements file of another resource, as a removal sees it. */
export interface OtherFile {
  path: string;
  /** Whether it lists one of the packages to remove. */
  lists: boolean;
  isMissing: boolean;
  /** Why its packages are not known; null if they are. */
  fault: string | null;
}

interface DeclaredPackages {
  /** Names of the packages that resources declare by name. */
  named: string[];
  /** Names of these, and of the packages that the current requirements files list for this machine. */
  all: string[];
  files: OtherFile[];
}

/** @param own names of the packages to remove */
export function declaredPackages(
  resource: ResolvedResource<'package-pip'>,
  own: readonly string[],
  machine: Machine,
): DeclaredPackages {
  const { walk } = machine;
  const path = realEnvironment(walk, resource.body.virtualenv);
  const bodies = machine
    .resourcesOf('package-pip')
    .map((other) => other as ResolvedResource<'package-pip'>)
    .filter(({ key, body }) => realEnvironment(walk, body.virtualenv) === path && machine.isDesired(key))
    .map(({ body }) => body);
  const named = bodies.flatMap(({ name }) => (name == null ? [] : [pythonName(name)]));
  const paths = new Set(bodies.flatMap(({ requirements }) => (requirements == null ? [] : [requirements])));
  const variables = paths.size === 0 ? null : markerVariables(pythonIn(walk, resource.body.virtualenv));
  const listed: string[] = [];
  const files = [...paths].map((each): OtherFile => {
    const { file, fault } = readOrFault(walk, each);
    const names = (file?.requirements ?? [])
      .filter(({ marker }) => marker === null || variables === null || evaluateMarker(marker, variables) !== false)
      .map(({ name }) => name);
    for (const name of names) listed.push(name);
    const lists = names.some((name) => own.includes(name));
    return { path: each, lists, isMissing: file === null && fault === null, fault };
  });
  return { named, all: [...named, ...listed], files };
}

/** Returns the path of an environment with symbolic links resolved, because several paths can name the same one. */
function realEnvironment(walk: PathWalk, path: string): string {
  try {
    return walk.within(path, 'null', (parent, name) => `${parent.path}/${name}`) ?? path;
  } catch (error) {
    // The path may belong to another resource, which then reports the failure itself.
    if (error instanceof HostFailure) return path;
    throw error;
  }
}

/** Returns a fault instead of failing, because an earlier resource may replace the file. */
export function readOrFault(walk: PathWalk, path: string): { file: RequirementsFile | null; fault: string | null } {
  try {
    return { file: readRequirements(walk, path), fault: null };
  } catch (error) {
    if (error instanceof HostFailure) return { file: null, fault: error.message };
    throw error;
  }
}

/**
 * Returns the files whose later content decides what a removal keeps, and whether a file that stays as it is lists one
 * of the packages.
 * @throws HostFailure if a file that stays as it is has packages that are not known
 */
export function decideFiles(
  { files = [] }: { files?: readonly OtherFile[] },
  { willBeThere = () => false, willChange = () => false }: Partial<Pick<Circumstances, 'willBeThere' | 'willChange'>>,
): { later: string[]; isListed: boolean } {
  const isLater = ({ path, isMissing }: OtherFile): boolean => willChange(path) || (isMissing && willBeThere(path));
  const current = files.filter((file) => !isLater(file));
  expectKnown({ files: current });
  return { later: files.filter(isLater).map(({ path }) => path), isListed: current.some(({ lists }) => lists) };
}

/** @throws HostFailure if the packages of a file are not known */
export function expectKnown({ files = [] }: { files?: readonly OtherFile[] }): void {
  const fault = files.find((file) => file.fault !== null)?.fault;
  if (fault != null) throw new HostFailure(fault);
}

export const unlessLater = (message: string, later: readonly string[], what = 'it'): string =>
  later.length === 0 ? message : `${message}, unless the later content of ${later.join(', ')} lists ${what}`;
