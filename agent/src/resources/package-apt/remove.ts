import { HostFailure } from '../../host/failure.ts';
import { type Footprint, takeFootprint } from '../../host/files/footprint.ts';
import { removeDirectory, removeFile } from '../../host/files/remove.ts';
import { aptRemove, simulate } from '../../host/packages/apt.ts';
import { aptComplaint, dpkgComplaint, parseSimulation } from '../../host/packages/apt-output.ts';
import { type DpkgDatabase, ownedPaths } from '../../host/packages/dpkg.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { mend } from './install.ts';
import { dpkgDatabase, isThere, plainName, seenIn } from './seen.ts';
import { keptBecause, leftovers, type Trace } from './trace.ts';

/** One package that is to go. */
export interface Farewell {
  name: string;
  /** What we brought along with it, by `name:architecture`: goes too, if nothing else needs it. */
  brought: readonly string[];
  /** What came with it, if it was not there in any state before we came: then it may go with all that is left of it. */
  trace: Trace | null;
}

/**
 * Removes packages in one transaction: those, and what they alone needed and we brought. Nothing else goes with them.
 * @returns by name: why it is still there, or what is to be said about its removal
 */
export async function removeAll(farewells: readonly Farewell[], machine: Machine): Promise<Map<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const before = await machine.database(dpkgDatabase);
  const present = farewells.filter(({ name }) => isThere(seenIn(before, name).state));
  const going = await unneeded(farewells, present, before, machine, outcomes);
  // Judged before it begins: what their own scripts do as they go is nobody's change.
  const judged = new Map<Farewell, Judgement>();
  const footprint = farewells.some(({ trace }) => trace !== null) ? await takeFootprint() : null;
  for (const farewell of farewells) {
    const judgement = outcomes.has(farewell.name) ? null : judge(farewell, going, footprint, before);
    if (judgement !== null) judged.set(farewell, judgement);
  }
  if (going.length > 0) {
    const result = await aptRemove({ names: going, native: before.native, what: 'installed' }, machine);
    machine.stale();
    await mend(machine);
    const after = await machine.database(dpkgDatabase);
    for (const { name } of present) {
      if (outcomes.has(name) || !isThere(seenIn(after, name).state)) continue;
      if ('refused' in result) {
        outcomes.set(name, { failure: neededByNow(result.refused) });
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
  for (const [farewell, judgement] of judged) {
    if (outcomes.has(farewell.name)) continue;
    const message = await clearUp(judgement, machine);
    if (message !== null) outcomes.set(farewell.name, { message });
  }
  return outcomes;
}

/**
 * What goes with them: nothing, or what we brought and nobody else needs. Those that others need are refused.
 * @returns names for apt
 */
async function unneeded(
  all: readonly Farewell[],
  farewells: readonly Farewell[],
  database: DpkgDatabase,
  machine: Machine,
  outcomes: Map<string, Outcome>,
): Promise<string[]> {
  const going: Farewell[] = [];
  const plain = (name: string): string => plainForApt(name, database);
  const names = (some: readonly Farewell[]): string[] => some.map(({ name }) => plain(name));
  const whatGoes = async (args: readonly string[]): Promise<string[]> => {
    const result = await simulate(args, machine);
    if (result.exitCode !== 0) throw new HostFailure(aptComplaint(`${result.stdout}\n${result.stderr}`));
    return parseSimulation(result.stdout).removed.map(plain);
  };
  const refused = async (some: readonly Farewell[]): Promise<string | null> => {
    try {
      const asked = new Set([...names(some), ...some.flatMap(({ brought }) => brought.map(plain))]);
      const others = (await whatGoes(['remove', '--', ...names(some)])).filter((name) => !asked.has(name));
      return others.length === 0
        ? null
        : `not removed, because others need it and would go with it: ${others.slice(0, 20).join(', ')}`;
    } catch (error) {
      if (error instanceof HostFailure) return error.message;
      throw error;
    }
  };
  if (farewells.length === 0 || (await refused(farewells)) === null) going.push(...farewells);
  else
    for (const farewell of farewells) {
      const reason = await refused([...going, farewell]);
      if (reason === null) going.push(farewell);
      else outcomes.set(farewell.name, { failure: reason });
    }
  // Of one that somebody removed by hand, what it needed may still be there.
  const brought = new Set(all.filter(({ name }) => !outcomes.has(name)).flatMap((one) => one.brought.map(plain)));
  const alone =
    going.length === 0 ? autoremove : ['remove', '--auto-remove', ...suggestedIsNotNeeded, '--', ...names(going)];
  const extras = brought.size === 0 ? [] : (await whatGoes(alone)).filter((name) => brought.has(name));
  return [...new Set([...names(going), ...extras])];
}

/** By itself apt keeps what any package suggests, as `tar` does with every packer: of what we brought, most would stay. */
const suggestedIsNotNeeded = ['-o', 'APT::AutoRemove::SuggestsImportant=false'];
const autoremove = [...suggestedIsNotNeeded, 'autoremove'];

const neededByNow = (names: readonly string[]): string => {
  const which = names.length === 0 ? '' : `: ${names.slice(0, 20).join(', ')}`;
  return `not removed: while the lock was waited for, something was installed that needs it${which}`;
};

/** As apt prints and takes a name. */
const plainForApt = (name: string, { native }: Pick<DpkgDatabase, 'native'>): string =>
  plainName(name, native).replace(/:all$/, '');

/**
 * Those of what we brought that nobody needs any more, although what we brought them for is gone already.
 */
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
  return there.map((key) => plainForApt(key, database)).filter((name) => unneeded.has(name));
}

interface Judgement {
  trace: Trace;
  /** A package and what we brought along with it, all of them new then and gone now: by `name:architecture`. */
  group: string[];
  /** Why something of somebody's would be lost with all that is left of them. */
  kept: string | null;
}

/** Whether a package that was not there before we came can go with all that is left of it. */
function judge(
  { name, brought, trace }: Farewell,
  going: readonly string[],
  now: Footprint | null,
  database: DpkgDatabase,
): Judgement | null {
  if (trace === null) return null;
  const self = keyLike(name, trace, database);
  const leaves = (key: string): boolean => {
    const found = database.packages.get(key);
    const plain = plainForApt(key, database);
    return found === undefined || !isThere(found.state) || going.includes(plain);
  };
  const group = trace.packages.filter((key) => (key === self || brought.includes(key)) && leaves(key));
  return group.length === 0 ? null : { trace, group, kept: keptBecause(group, trace, now, database) };
}

/**
 * Removes what is left of packages, unless something of somebody's would be lost.
 * @returns what is to be said about it
 */
async function clearUp({ trace, group, kept }: Judgement, machine: Machine): Promise<string | null> {
  const database = await machine.database(dpkgDatabase);
  const gone = group.filter((key) => !isThere(database.packages.get(key)?.state ?? 'not-installed'));
  const remains = gone.filter((key) => database.packages.get(key)?.state === 'config-files');
  if (kept !== null) return remains.length === 0 ? null : `kept its configuration and data: ${kept}`;
  if (remains.length > 0) {
    const names = remains.map((key) => plainForApt(key, database));
    const result = await aptRemove({ names, native: database.native, what: 'leftovers' }, machine);
    machine.stale();
    if ('refused' in result) return `kept its configuration and data: ${result.refused.join(', ')} was installed again`;
    const { exitCode, output } = result.done;
    if (exitCode !== 0) return `its configuration could not be removed: ${aptComplaint(output)}`;
  }
  const after = await takeFootprint();
  if (after !== null) await sweep(gone, trace, after, machine);
  return null;
}

/** The name under which a trace has it. */
function keyLike(name: string, trace: Trace, { native }: DpkgDatabase): string | null {
  const [bare, architecture] = name.split(':');
  const wanted = architecture === undefined ? [`${bare}:${native}`, `${bare}:all`] : [name];
  return trace.packages.find((key) => wanted.includes(key)) ?? null;
}

/** What their own removal forgot: it came with them, and is as it came. What cannot be reached is left. */
async function sweep(own: readonly string[], trace: Trace, now: Footprint, machine: Machine): Promise<void> {
  const ours = leftovers(own, trace, now);
  // Other packages may have come into a place that these name, or been brought up to date with them.
  const owned = await ownedPaths(new Set(ours.map(({ path }) => path)));
  for (const { path, stamp } of ours) {
    if (owned.has(path) || machine.declared(path)) continue;
    try {
      machine.walk.within(path, 'null', (parent, name) => {
        if (stamp === 'd') removeDirectory(parent, name);
        else removeFile(parent, name);
        machine.changedDirectory(parent.path);
      });
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      machine.warn(`left over of ${own.join(', ')}: ${error.message}`);
    }
  }
}
