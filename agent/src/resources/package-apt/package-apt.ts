import type { ResolvedResource } from '@muster/protocol/module';
import { compareVersions } from '@muster/protocol/version-order';
import { HostFailure } from '../../host/failure.ts';
import { aptCache } from '../../host/packages/apt.ts';
import { type AptPolicy, parsePolicy } from '../../host/packages/apt-output.ts';
import type { DpkgDatabase } from '../../host/packages/dpkg.ts';
import { checkFile, keptBack, type PackageFile, withFiles } from '../package-file/package-file.ts';
import { changesPackage } from '../package-hold/package-hold.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { type Difference, type Json, type Machine, nothing, type Outcome } from '../provider/provider.ts';
import { diffPackage, notRefreshed, vital } from './diff.ts';
import { hold, release } from './hold.ts';
import { installGroups, mark, type RequestedPackage, repairInterrupted } from './install.ts';
import { orphansOf, type PackageRemoval, removeAll } from './remove.ts';
import {
  bodyOf,
  briefly,
  debFile,
  dpkgDatabase,
  isDeclaredAbsent,
  isThere,
  nativeName,
  observePackage,
  type PackageBefore,
  type PackageItem,
  refreshOldLists,
  type SeenPackage,
  seenIn,
  seenToGo,
} from './seen.ts';
import { ground, readTrace, traceSince } from './trace.ts';

/** A package for Debian or one of its derivatives, with apt and dpkg. */
export const packageApt = defineProvider<'package-apt', SeenPackage, PackageBefore>({
  type: 'package-apt',
  fields: {
    name: 'text',
    version: 'text?',
    recommends: 'boolean?',
    hold: 'boolean?',
    source: 'text?',
    url: 'text?',
    sha256: 'text?',
    ensure: 'text?',
  },
  brings: () => ['accounts', 'units', 'programs', 'databases', 'servers'],
  // The package may provide package sources, as debian-archive-keyring does. Only its dependents wait for them, so that
  // a misspelled package name still fails a plan.
  bringsToDependents: () => ['packages'],
  check: checkFile,
  observe: observePackage,
  diff: diffPackage,
  inBrief: briefly,

  async remember(resource, seen, _difference, known, machine) {
    const held = heldBefore(resource, seen, known);
    const before = known === null ? null : { ...known, ...held };
    // The pre-installation state is recorded right before the installation. The record of an earlier failed attempt
    // lacks changes that users made after that attempt.
    if (before !== null && (before.state === 'installed' || before.ground === null || isThere(seen.state)))
      return before;
    const { state, version, auto } = seen;
    if (isThere(state)) return { state: 'installed', version, auto, ...held, ground: null, trace: null };
    const from = await machine.database(ground);
    const was = state === 'config-files' ? 'config-files' : 'absent';
    return { state: was, version: null, auto: false, ...held, ground: { ...from }, trace: null };
  },

  async observeForRemoval(resource, before, machine) {
    const { name } = bodyOf(resource);
    const look = before.state === 'installed' ? seenIn : seenToGo;
    const found = look(await machine.database(dpkgDatabase), name);
    if (before.trace !== null && !isThere(found.state)) {
      const trace = readTrace(before.trace, machine);
      const orphans = trace === null ? [] : await orphansOf(trace, machine);
      return { ...found, offer: null, orphans: orphans.slice(0, 50) };
    }
    const comesBack = before.state === 'installed' && before.version !== found.version;
    if (!comesBack) return { ...found, offer: null };
    let policy = await policyOf(name, machine);
    let trouble: string | null = null;
    if (policy.candidate === null && !isThere(found.state)) {
      trouble = await refreshOldLists(machine);
      policy = await policyOf(name, machine);
    }
    const offered = policy.offered.filter((version) => version === before.version);
    return { ...found, offer: { candidate: policy.candidate, offered, providers: [], trouble } };
  },

  diffRemoval: (resource, before, seen) => diffPackageRemoval(bodyOf(resource).name, before, seen),

  async apply(resource, seen, difference, machine) {
    return only(await together([{ kind: 'apply', resource, seen, difference, before: null }], machine));
  },

  async remove(resource, before, seen, difference, machine) {
    return only(await together([{ kind: 'remove', resource, seen, difference, before }], machine));
  },

  together,

  async recover(machine) {
    const result = await repairInterrupted(machine);
    if (result !== null && result.exitCode !== 0)
      throw new HostFailure('dpkg could not finish an interrupted operation; see /var/log/dpkg.log');
  },

  afterwards: (_resource, before, machine) => withTrace(before, machine),
});

async function policyOf(name: string, machine: Machine): Promise<AptPolicy> {
  const { native } = await machine.database(dpkgDatabase);
  const policies = parsePolicy((await aptCache(['policy', '--', name], machine)).stdout);
  return policies.get(nativeName(name, native)) ?? { candidate: null, offered: [] };
}

/**
 * Returns the recorded original hold. If none is recorded, returns the current hold; empty if the module does not
 * declare one.
 */
function heldBefore(
  resource: ResolvedResource,
  { held }: SeenPackage,
  known: PackageBefore | null,
): Pick<PackageBefore, 'held'> {
  if (known?.held !== undefined) return { held: known.held };
  return bodyOf(resource).hold == null ? {} : { held };
}

const only = (outcomes: readonly Outcome[]): Outcome => outcomes[0] ?? {};

/** Decides how a removal restores the original state of a package. */
export function diffPackageRemoval(name: string, before: PackageBefore, seen: SeenPackage): Difference {
  const there = isThere(seen.state);
  if (before.state !== 'installed') {
    const hasOwnRemains = seen.state === 'config-files' && before.state === 'absent' && before.trace !== null;
    const orphans = seen.orphans ?? [];
    if (!there && !hasOwnRemains && orphans.length === 0) return nothing();
    if (seen.held && before.held === undefined) throw onHold(name);
    if (seen.vital !== undefined) throw vital(name, seen.vital);
    if (!there && orphans.length > 0)
      return { action: 'remove', changes: [{ field: 'dependencies', from: orphans.join(' '), to: null }], diff: null };
    const from = there ? 'present' : 'its configuration';
    return { action: 'remove', changes: [{ field: 'ensure', from, to: 'absent' }], diff: null };
  }
  const { version: old } = before;
  const isOffered = old !== null && (seen.offer?.offered.includes(old) ?? false);
  // Packages from files have no source. If the lists could not be refreshed, a later attempt may find the package.
  if (!there && seen.offer?.candidate === null && !isOffered && seen.offer.trouble === null)
    return nothing('stays removed, because no source offers it');
  if (!there)
    return {
      action: 'create',
      changes: [
        { field: 'ensure', from: 'absent', to: 'present' },
        ...(isOffered ? [{ field: 'version', from: null, to: old }] : []),
        ...(before.held === true ? [{ field: 'hold', from: 'false', to: 'true' }] : []),
      ],
      diff: null,
      ...(isOffered ? {} : { message: `its version ${old} is no longer offered; another version will be installed` }),
    };
  const changes: Difference['changes'] = [];
  if (old !== null && seen.version !== old && isOffered) {
    if (seen.held && before.held === undefined) throw onHold(name);
    changes.push({ field: 'version', from: seen.version, to: old });
  }
  if (before.auto && !seen.auto) changes.push({ field: 'mark', from: 'manual', to: 'automatic' });
  if (before.held !== undefined && before.held !== seen.held)
    changes.push({ field: 'hold', from: String(seen.held), to: String(before.held) });
  const left =
    old !== null && seen.version !== old && !isOffered
      ? `kept at ${seen.version}: the sources no longer offer the original version ${old}`
      : undefined;
  if (changes.length === 0) return nothing(left);
  const isOlder = isOffered && seen.version !== null && old !== null && compareVersions(old, seen.version) < 0;
  const message = left ?? (isOlder ? `${old} is older than ${seen.version}, so this is a downgrade` : undefined);
  return { action: 'update', changes, diff: null, ...(message === undefined ? {} : { message }) };
}

const onHold = (name: string): HostFailure =>
  new HostFailure(
    `${name} is on hold on this machine, so it is not changed; to release it, run: apt-mark unhold ${name}`,
  );

async function together(items: readonly PackageItem[], machine: Machine): Promise<Outcome[]> {
  await repairInterrupted(machine);
  const withFile = items.filter(
    (item) => item.kind === 'apply' && item.seen.file !== undefined && changesPackage(item),
  );
  // Fetches all files first, because a plan does not read the file of a missing package.
  return withFiles(withFile, debFile, machine, (files) => changeItems(items, files, machine));
}

type Files = ReadonlyMap<PackageItem, PackageFile | HostFailure>;

async function changeItems(items: readonly PackageItem[], files: Files, machine: Machine): Promise<Outcome[]> {
  const outcomes = new Map<PackageItem, Outcome>();
  for (const [item, file] of files) if (file instanceof HostFailure) outcomes.set(item, { failure: file.message });
  const waiting = keptBack(files);
  if (waiting !== null) for (const item of items.filter(isGoing)) outcomes.set(item, waiting);
  const usable = items.filter((item) => !outcomes.has(item));
  await release(usable, machine);
  const going = usable.filter(isGoing);
  const removals = await Promise.all(going.map((item) => packageRemovalOf(item, machine)));
  // Removes packages first, because they may conflict with the packages to install.
  const removed = going.length === 0 ? null : await removeAll(removals, machine);
  for (const item of going) outcomes.set(item, removed?.get(bodyOf(item.resource).name) ?? {});
  const installed = await installItems(
    usable.filter((item) => !isGoing(item)),
    files,
    machine,
  );
  for (const [item, outcome] of installed) outcomes.set(item, outcome);
  const coming = items.filter((item) => !isGoing(item));
  const database = await machine.database(dpkgDatabase);
  await mark('auto', autoAgain(coming, outcomes, database), machine);
  await hold(items, outcomes, machine);
  for (const item of coming) {
    const outcome = outcomes.get(item) ?? {};
    if (item.kind === 'apply' && item.before !== null && (outcome.failure === undefined || isHalfDone(item, database)))
      outcomes.set(item, { ...outcome, before: (await withTrace(item.before, machine)) satisfies Json });
  }
  return items.map((item) => outcomes.get(item) ?? {});
}

/** @returns failures; a package without one is installed as declared */
async function installItems(
  items: readonly PackageItem[],
  files: Files,
  machine: Machine,
): Promise<Map<PackageItem, Outcome>> {
  const outcomes = new Map<PackageItem, Outcome>();
  const trouble = items.some((item) => files.has(item)) ? await refreshOldLists(machine) : null;
  const requested = items.filter(changesPackage).map((item) => requestedPackageOf(item, files.get(item)));
  const failed = await installGroups(requested, machine);
  for (const item of items) {
    const outcome = failed.get(bodyOf(item.resource).name);
    if (outcome === undefined) continue;
    const because = trouble !== null && files.has(item) ? `; ${notRefreshed(trouble)}` : '';
    outcomes.set(item, { ...outcome, failure: `${outcome.failure}${because}` });
  }
  return outcomes;
}

/** Reports whether the package is installed although its installation failed. */
const isHalfDone = ({ resource }: PackageItem, database: DpkgDatabase): boolean =>
  isThere(seenIn(database, bodyOf(resource).name).state);

const isGoing = ({ kind, resource, before }: PackageItem): boolean =>
  kind === 'apply' ? isDeclaredAbsent(resource) : before?.state !== 'installed';

async function packageRemovalOf({ kind, resource, before }: PackageItem, machine: Machine): Promise<PackageRemoval> {
  const { name } = bodyOf(resource);
  // The agent did not install a package that is declared absent, so only the package itself is removed.
  if (kind === 'apply' || before === null || before.trace === null) return { name, brought: [], trace: null };
  const trace = readTrace(before.trace, machine);
  if (trace === null) return { name, brought: [], trace: null };
  return { name, brought: trace.packages, trace: before.state === 'absent' ? trace : null };
}

function requestedPackageOf(
  { kind, resource, seen, difference }: PackageItem,
  file: PackageFile | HostFailure | undefined,
): RequestedPackage {
  const { name, recommends = null } = bodyOf(resource);
  const fields = new Map(difference.changes.map(({ field, to }) => [field, to]));
  const version = fields.get('version');
  // A package whose configuration failed is not unpacked again.
  const again = fields.has('state') && (seen.state === 'half-installed' || seen.state === 'installed');
  // Only a new installation has its own options. Version changes may depend on each other, so they share one
  // transaction.
  const isNew = kind === 'apply' && fields.get('ensure') === 'present';
  const common = { name, again, recommends: isNew ? recommends : null };
  if (file !== undefined && !(file instanceof HostFailure))
    return { ...common, version: file.contents.version, file: file.path };
  return { ...common, version: typeof version === 'string' ? version : null, file: null };
}

/** Returns the packages that must be marked as automatic again. */
function autoAgain(
  items: readonly PackageItem[],
  outcomes: ReadonlyMap<PackageItem, Outcome>,
  database: DpkgDatabase,
): string[] {
  return items
    .filter((item) => item.kind === 'remove' && item.before?.auto === true)
    .filter((item) => outcomes.get(item)?.failure === undefined)
    .map(({ resource }: { resource: ResolvedResource }) => bodyOf(resource).name)
    .filter((name) => isThere(seenIn(database, name).state));
}

/** Adds the trace of the installation once the package is installed. */
async function withTrace(before: PackageBefore, machine: Machine): Promise<PackageBefore> {
  if (before.ground === null) return before;
  try {
    const { reference } = await machine.database(traceSince(before.ground));
    return { ...before, ground: null, trace: { ...reference } };
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    // The installation itself succeeded. Without a trace, a later removal keeps the remains of the package.
    machine.warn(`failed to record the files that came with a package; a removal will keep them: ${error.message}`);
    return before;
  }
}
