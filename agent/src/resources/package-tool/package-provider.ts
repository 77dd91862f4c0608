import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { versionText } from '../../host/packages/rpm-version.ts';
import { lowerBound } from '../../host/packages/version-range.ts';
import { checkFile, keptBack, type PackageFile, withFiles } from '../package-file/package-file.ts';
import { changesPackage } from '../package-hold/package-hold.ts';
import { defineProvider, type Fields } from '../provider/define-provider.ts';
import type { Item, Machine, Outcome } from '../provider/provider.ts';
import { diffPackage } from './diff.ts';
import { hold, release } from './hold.ts';
import { installAll } from './install.ts';
import { diffPackageRemoval } from './removal-diff.ts';
import { type PackageRemoval, removeAll } from './remove.ts';
import { briefly, observePackage, offersOf, type PackageBefore, type SeenPackage, seenIn } from './seen.ts';
import { bodyOf, isDeclaredAbsent, type PackageTool, type RequestedPackage, type ToolType } from './tool.ts';

type PackageItem = Item<SeenPackage, PackageBefore>;

/** Returns the provider of the packages of one package manager. */
export const packageProvider = <T extends ToolType>(type: T, fields: Fields<T>, tool: PackageTool) =>
  defineProvider<T, SeenPackage, PackageBefore>({
    type,
    fields,
    brings: () => ['accounts', 'units', 'programs', 'databases', 'servers'],
    // A package may contain a package source, as epel-release does. Only its dependents wait for it, so that a misspelled
    // package name still fails a plan.
    bringsToDependents: () => ['packages'],
    check(resource: ResolvedResource) {
      checkBody(resource);
      // Only kinds with package files have their fields.
      if (tool.files !== null) checkFile(resource as ResolvedResource<'package-dnf'>);
    },
    observe: (resource, circumstances, machine) => observePackage(tool, resource, circumstances, machine),
    diff: (resource, seen, circumstances) => diffPackage(tool, resource, seen, circumstances),
    inBrief: briefly,

    async remember(resource, seen, _difference, before, machine) {
      const locks = bodyOf(resource).hold == null || before?.locks !== undefined ? {} : { locks: seen.locks ?? [] };
      if (before !== null) return { ...before, ...locks };
      if (seen.installed !== null) return { version: versionText(seen.installed), ground: null, brought: [], ...locks };
      return { version: null, ground: { ...(await machine.database(tool.ground)) }, brought: [], ...locks };
    },

    async observeForRemoval(resource, before, machine) {
      const { name } = bodyOf(resource);
      const found = seenIn(await machine.database(tool.database), name, tool);
      const comesBack =
        before.version !== null && (found.installed === null || versionText(found.installed) !== before.version);
      if (!comesBack) return { ...found, offer: null };
      const { versions, trouble } = await offersOf(tool, name, machine);
      const original = versions.filter((offered) => versionText(offered) === before.version);
      return {
        ...found,
        offer: { versions: original.length > 0 ? original : versions.slice(-1), providers: [], trouble },
      };
    },

    diffRemoval: (resource, before, seen) => diffPackageRemoval(tool, bodyOf(resource).name, before, seen),

    async apply(resource, seen, difference, machine) {
      const item: PackageItem = { kind: 'apply', resource, seen, difference, before: null };
      return (await together(tool, [item], machine))[0] ?? {};
    },

    async remove(resource, before, seen, difference, machine) {
      return (await together(tool, [{ kind: 'remove', resource, seen, difference, before }], machine))[0] ?? {};
    },

    together: (items, machine) => together(tool, items, machine),
    recover: (machine) => tool.recover(machine),
    afterwards: (_resource, before, machine) => withBrought(tool, before, machine),
  });

/** Refuses names and versions that a package manager would not read as a single package. */
function checkBody({ type, body }: { type: string; body: unknown }): void {
  const { name, version, from } = body as { name: string; version?: string | null; from?: string | null };
  if (!/^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/.test(name))
    throw new HostFailure(
      `${type} manages packages by their names; ${name} is a group, a file, a pattern, or a condition`,
    );
  if (from != null && !/^[A-Za-z0-9_][A-Za-z0-9_.:-]*$/.test(from))
    throw new HostFailure(`${from.slice(0, 100)} is not the id of one repository`);
  if (version == null || version === 'latest') return;
  const bound = lowerBound(version);
  const form =
    bound === null
      ? /^(\d+:)?[A-Za-z0-9_][A-Za-z0-9_.+~^*]*(-[A-Za-z0-9_.+~^*]+)?$/
      : /^(\d+:)?[A-Za-z0-9_.+~^]+(-[A-Za-z0-9_.+~^]+)?$/;
  if (!form.test(bound ?? version))
    throw new HostFailure(
      `${version} is not a version of a package; write 1.2, 1.2-3.fc40, 1:1.2-3.fc40, 1.*, or >=1.2`,
    );
}

function together(tool: PackageTool, items: readonly PackageItem[], machine: Machine): Promise<Outcome[]> {
  if (tool.files === null) return changeItems(tool, items, new Map(), machine);
  const withFile = items.filter(
    (item) => item.kind === 'apply' && item.seen.file !== undefined && changesPackage(item),
  );
  // Fetches all files first, because a plan reads no file of a missing package.
  return withFiles(withFile, tool.files, machine, (files) => changeItems(tool, items, files, machine));
}

type Files = ReadonlyMap<PackageItem, PackageFile | HostFailure>;

async function changeItems(
  tool: PackageTool,
  items: readonly PackageItem[],
  files: Files,
  machine: Machine,
): Promise<Outcome[]> {
  const outcomes = new Map<PackageItem, Outcome>();
  for (const [item, file] of files) if (file instanceof HostFailure) outcomes.set(item, { failure: file.message });
  const waiting = keptBack(files);
  if (waiting !== null) for (const item of items.filter(isRemoval)) outcomes.set(item, waiting);
  const usable = items.filter((item) => !outcomes.has(item));
  await release(tool, usable, machine);
  // Removes packages first, because they may conflict with the packages to install.
  const removals = usable.filter((item) => isRemoval(item) && changesPackage(item));
  const removed = removals.length === 0 ? null : await removeAll(tool, removals.map(packageRemovalOf), machine);
  for (const item of removals) outcomes.set(item, removed?.get(bodyOf(item.resource).name) ?? {});
  const requested = usable.filter((item) => !isRemoval(item) && changesPackage(item));
  const results =
    requested.length === 0
      ? null
      : await installAll(
          tool,
          requested.map((item) => requestedPackageOf(item, files.get(item))),
          machine,
        );
  for (const item of requested) outcomes.set(item, results?.get(bodyOf(item.resource).name) ?? {});
  await hold(tool, items, outcomes, machine);
  const database = await machine.database(tool.database);
  for (const item of items.filter((item) => !isRemoval(item))) {
    const { name } = bodyOf(item.resource);
    const outcome = outcomes.get(item) ?? {};
    // A package may be installed although its installation failed.
    const isInstalled = outcome.failure === undefined || seenIn(database, name, tool).installed !== null;
    const before =
      item.kind === 'apply' && item.before !== null && isInstalled
        ? await withBrought(tool, item.before, machine)
        : null;
    outcomes.set(item, before === null ? outcome : { ...outcome, before });
  }
  return items.map((item) => outcomes.get(item) ?? {});
}

const isRemoval = ({ kind, resource, before }: PackageItem): boolean =>
  kind === 'apply' ? isDeclaredAbsent(resource) : before?.version === null;

const packageRemovalOf = ({ kind, resource, before }: PackageItem): PackageRemoval => ({
  name: bodyOf(resource).name,
  // The agent did not install a package that is declared absent, so only the package itself is removed.
  brought: kind === 'apply' ? [] : (before?.brought ?? []),
});

function requestedPackageOf(
  { kind, resource, difference }: PackageItem,
  file: PackageFile | HostFailure | undefined,
): RequestedPackage {
  const { name } = bodyOf(resource);
  if (file !== undefined && !(file instanceof HostFailure))
    return { name, version: file.contents.version, file: file.path, from: null };
  const version = difference.changes.find(({ field }) => field === 'version')?.to;
  // A removal restores a version that another repository may have offered.
  const from = kind === 'apply' ? (bodyOf(resource).from ?? null) : null;
  return { name, version: typeof version === 'string' ? version : null, file: null, from };
}

/** Maximum size of the copied names, in bytes. */
const maxGround = 16 * 1024 * 1024;

/** Records which packages were installed with this one. */
async function withBrought(tool: PackageTool, before: PackageBefore, machine: Machine): Promise<PackageBefore> {
  if (before.ground === null) return before;
  const stored = machine.copies.read(before.ground, maxGround);
  if (stored === null) return { ...before, ground: null };
  const known = new Set(JSON.parse(stored.toString('utf8')) as string[]);
  const { packages } = await machine.database(tool.database);
  return { ...before, ground: null, brought: [...packages.keys()].filter((name) => !known.has(name)) };
}
