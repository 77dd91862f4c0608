import { HostFailure } from '../../host/failure.ts';
import { type Footprint, takeFootprint } from '../../host/files/footprint.ts';
import { removeDirectory, removeFile } from '../../host/files/remove.ts';
import { aptRemove, simulate } from '../../host/packages/apt.ts';
import { aptComplaint, dpkgComplaint, parseSimulation } from '../../host/packages/apt-output.ts';
import { type DpkgDatabase, ownedPaths } from '../../host/packages/dpkg.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { repairInterrupted } from './install.ts';
import { dpkgDatabase, isThere, nativeName, seenIn } from './seen.ts';
import { leftovers, reasonToKeep, type Trace } from './trace.ts';

export interface PackageRemoval {
  name: string;
  /**
   * Dependencies that were installed with the package, as `name:architecture`. Those that are no longer needed are
   * removed too.
   */
  brought: readonly string[];
  /**
   * Trace of the installation, or null if the package was already in dpkg's database, in any state. With a trace, the
   * remains of the package may be deleted too.
   */
  trace: Trace | null;
}

/**
 * Removes packages in one transaction, with the dependencies that came with them and that no other package needs.
 * Removes no other package.
 * @returns the reason why a package is still installed, or a note about its removal, by package name
 */
export async function removeAll(removals: readonly PackageRemoval[], machine: Machine): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const before = await machine.database(dpkgDatabase);
  const present = removals.filter(({ name }) => isThere(seenIn(before, name).state));
  const going = await unneeded(removals, present, before, machine, outcomes);
  // Decided before the removal starts, so that changes by the packages' own scripts do not count as changes by others.
  const judged = new Map<PackageRemoval, Judgement>();
  const footprint = removals.some(({ trace }) => trace !== null) ? await takeFootprint() : null;
  for (const removal of removals) {
    const judgement = outcomes.has(removal.name) ? null : judge(removal, going, footprint, before);
    if (judgement !== null) judged.set(removal, judgement);
  }
  if (going.length > 0) {
    const result = await aptRemove({ names: going, native: before.native, what: 'installed' }, machine);
    machine.stale();
    await repairInterrupted(machine);
    const after = await machine.database(dpkgDatabase);
    for (const { name } of present) {
      if (outcomes.has(name) || !isThere(seenIn(after, name).state)) continue;
      if ('refused' in result) {
        outcomes.set(name, { failure: becameNeeded(result.refused) });
        continue;
      }
      const { output, truncated, exitCode } = result.done;
      const own = dpkgComplaint(output, name.split(':')[0] ?? name);
      outcomes.set(name, {
        failure: own ?? aptComplaint(output),
        output: { stdout: output, stderr: '', exitCode: exitCode ?? 128, truncated },
      });
    }
  }
  for (const [removal, judgement] of judged) {
    if (outcomes.has(removal.name)) continue;
    const message = await clearUp(judgement, machine);
    if (message !== null) outcomes.set(removal.name, { message });
  }
  return outcomes;
}

/**
 * Returns the packages to remove, with their dependencies that no other package needs. Refuses packages that others
 * need.
 * @returns names for apt
 */
async function unneeded(
  all: readonly PackageRemoval[],
  removals: readonly PackageRemoval[],
  database: DpkgDatabase,
  machine: Machine,
  outcomes: Map<string, Outcome>,
): Promise<string[]> {
  const going: PackageRemoval[] = [];
  const nameForApt = (name: string): string => aptName(name, database);
  const names = (some: readonly PackageRemoval[]): string[] => some.map(({ name }) => nameForApt(name));
  const whatGoes = async (args: readonly string[]): Promise<string[]> => {
    const result = await simulate(args, machine);
    if (result.exitCode !== 0) throw new HostFailure(aptComplaint(`${result.stdout}\n${result.stderr}`));
    return parseSimulation(result.stdout).removed.map(nameForApt);
  };
  const refused = async (some: readonly PackageRemoval[]): Promise<string | null> => {
    try {
      const requested = new Set([...names(some), ...some.flatMap(({ brought }) => brought.map(nameForApt))]);
      const others = (await whatGoes(['remove', '--', ...names(some)])).filter((name) => !requested.has(name));
      return others.length === 0
        ? null
        : `not removed, because other packages depend on it and would be removed too: ${others.slice(0, 20).join(', ')}`;
    } catch (error) {
      if (error instanceof HostFailure) return error.message;
      throw error;
    }
  };
  if (removals.length === 0 || (await refused(removals)) === null) going.push(...removals);
  else
    for (const removal of removals) {
      const reason = await refused([...going, removal]);
      if (reason === null) going.push(removal);
      else outcomes.set(removal.name, { failure: reason });
    }
  // A package that was removed by hand may have left its dependencies installed.
  const brought = new Set(all.filter(({ name }) => !outcomes.has(name)).flatMap((one) => one.brought.map(nameForApt)));
  const alone =
    going.length === 0 ? autoremove : ['remove', '--auto-remove', ...suggestedIsNotNeeded, '--', ...names(going)];
  const extras = brought.size === 0 ? [] : (await whatGoes(alone)).filter((name) => brought.has(name));
  return [...new Set([...names(going), ...extras])];
}

/**
 * By default, apt keeps packages that any other package suggests. That would keep most dependencies: `tar` suggests
 * every compressor.
 */
const suggestedIsNotNeeded = ['-o', 'APT::AutoRemove::SuggestsImportant=false'];
const autoremove = [...suggestedIsNotNeeded, 'autoremove'];

const becameNeeded = (names: readonly string[]): string => {
  const which = names.length === 0 ? '' : `: ${names.slice(0, 20).join(', ')}`;
  return `not removed, because a package that depends on it was installed while the agent waited for the lock${which}`;
};

/** Returns the name as apt prints and accepts it. */
const aptName = (name: string, { native }: Pick<DpkgDatabase, 'native'>): string =>
  nativeName(name, native).replace(/:all$/, '');

/** Returns unneeded dependencies that the agent installed for a package that is already removed. */
export async function orphansOf(trace: Trace, machine: Machine): Promise<string[]> {
  const database = await machine.database(dpkgDatabase);
  const there = trace.packages.filter((key) => {
    const found = database.packages.get(key);
    return found !== undefined && isThere(found.state) && found.auto;
  });
  if (there.length === 0) return [];
  const { stdout, exitCode } = await simulate(autoremove, machine);
  if (exitCode !== 0) return [];
  const unneeded = new Set(parseSimulation(stdout).removed);
  return there.map((key) => aptName(key, database)).filter((name) => unneeded.has(name));
}

interface Judgement {
  trace: Trace;
  /** The package, and its dependencies that were installed and are removed together with it, as `name:architecture`. */
  group: string[];
  /** Why the leftover files are kept: removing them would lose a change by others. Null if they can be deleted. */
  kept: string | null;
}

/** Decides whether the remains of a package that the agent installed can be deleted too. */
function judge(
  { name, brought, trace }: PackageRemoval,
  going: readonly string[],
  now: Footprint | null,
  database: DpkgDatabase,
): Judgement | null {
  if (trace === null) return null;
  const self = keyLike(name, trace, database);
  const leaves = (key: string): boolean => {
    const found = database.packages.get(key);
    const name = aptName(key, database);
    return found === undefined || !isThere(found.state) || going.includes(name);
  };
  const group = trace.packages.filter((key) => (key === self || brought.includes(key)) && leaves(key));
  return group.length === 0 ? null : { trace, group, kept: reasonToKeep(group, trace, now, database) };
}

/**
 * Deletes packages' remains, unless that would lose a change by others.
 * @returns a note for the operator
 */
async function clearUp({ trace, group, kept }: Judgement, machine: Machine): Promise<string | null> {
  const database = await machine.database(dpkgDatabase);
  const removed = group.filter((key) => !isThere(database.packages.get(key)?.state ?? 'not-installed'));
  const remains = removed.filter((key) => database.packages.get(key)?.state === 'config-files');
  if (kept !== null) return remains.length === 0 ? null : `its configuration and data are kept: ${kept}`;
  if (remains.length > 0) {
    const names = remains.map((key) => aptName(key, database));
    const result = await aptRemove({ names, native: database.native, what: 'leftovers' }, machine);
    machine.stale();
    if ('refused' in result)
      return `its configuration and data are kept: ${result.refused.join(', ')} was installed again`;
    const { exitCode, output } = result.done;
    if (exitCode !== 0) return `its configuration could not be removed: ${aptComplaint(output)}`;
  }
  const after = await takeFootprint();
  if (after !== null) await sweep(removed, trace, after, machine);
  return null;
}

/** Returns the key of a package in a trace. */
function keyLike(name: string, trace: Trace, { native }: DpkgDatabase): string | null {
  const [baseName, architecture] = name.split(':');
  const candidates = architecture === undefined ? [`${baseName}:${native}`, `${baseName}:all`] : [name];
  return trace.packages.find((key) => candidates.includes(key)) ?? null;
}

/**
 * Deletes unchanged paths that came with the packages and that their removal left behind. Skips paths that it cannot
 * reach.
 */
async function sweep(own: readonly string[], trace: Trace, now: Footprint, machine: Machine): Promise<void> {
  const ownLeftovers = leftovers(own, trace, now);
  // Another package may have taken over one of these paths.
  const owned = await ownedPaths(new Set(ownLeftovers.map(({ path }) => path)));
  for (const { path, stamp } of ownLeftovers) {
    if (owned.has(path) || machine.declared(path)) continue;
    try {
      machine.walk.within(path, 'null', (parent, name) => {
        if (stamp === 'd') removeDirectory(parent, name);
        else removeFile(parent, name);
        machine.changedDirectory(parent.path);
      });
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      machine.warn(`failed to delete a leftover path of ${own.join(', ')}: ${error.message}`);
    }
  }
}
