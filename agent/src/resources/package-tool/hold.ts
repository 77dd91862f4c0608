import { editLocks, type PackageLock } from '../../host/packages/package-locks.ts';
import { recordingFailures, releasesHold } from '../package-hold/package-hold.ts';
import type { Item, Machine, Outcome } from '../provider/provider.ts';
import { baseNameIn, type PackageBefore, type SeenPackage, seenIn } from './seen.ts';
import { bodyOf, isDeclaredAbsent, type PackageCommands, type PackageTool } from './tool.ts';

type PackageItem = Item<SeenPackage, PackageBefore>;

/** Reports whether the package must be released before its change, because the package manager keeps its version. */
export const mustBeReleased = (item: PackageItem): boolean =>
  item.seen.locked && releasesHold(item, item.before?.locks !== undefined);

/**
 * Returns the locks that the package must have after its change, or null if they do not change. A failed change keeps
 * the previous locks.
 * @param installed the installed version after the change
 */
export function locksAfter(
  { locks }: Pick<PackageCommands, 'locks'>,
  item: PackageItem,
  baseName: string,
  installed: SeenPackage['installed'],
  hasFailed: boolean,
): readonly PackageLock[] | null {
  const { kind, resource, seen, before } = item;
  const found = seen.locks ?? [];
  if (hasFailed) return mustBeReleased(item) ? found : null;
  if (kind === 'remove') return before?.locks ?? null;
  if (isDeclaredAbsent(resource) || bodyOf(resource).hold !== true || installed === null) return null;
  if (seen.locked && !mustBeReleased(item)) return null;
  // If others removed the lock since, it returns to its original place.
  return locks.entries(baseName, installed, found.length > 0 ? found : (before?.locks ?? []));
}

/**
 * Releases the packages that the agent changes. If the agent is killed before `hold`, the next attempt observes that the
 * lock is missing, and adds it.
 * @throws HostFailure
 */
export async function release(tool: PackageTool, items: readonly PackageItem[], machine: Machine): Promise<void> {
  const database = await machine.database(tool.database);
  const names = items.filter(mustBeReleased).map(({ resource }) => baseNameIn(database, bodyOf(resource).name));
  if (names.length === 0) return;
  await editLocks(tool.locks, (text) => names.reduce((edited, name) => tool.locks.replaced(edited, name, []), text));
  machine.stale(tool.database);
}

/** Locks packages after their change. Records a failure for each package that cannot be locked. */
export async function hold(
  tool: PackageTool,
  items: readonly PackageItem[],
  outcomes: Map<PackageItem, Outcome>,
  machine: Machine,
): Promise<void> {
  const database = await machine.database(tool.database);
  const locked = items.flatMap((item) => {
    const { name } = bodyOf(item.resource);
    const baseName = baseNameIn(database, name);
    const hasFailed = outcomes.get(item)?.failure !== undefined;
    const locks = locksAfter(tool, item, baseName, seenIn(database, name, tool).installed, hasFailed);
    return locks === null ? [] : [{ item, baseName, locks }];
  });
  if (locked.length === 0) return;
  const held = locked.map(({ item }) => item);
  await recordingFailures(held, outcomes, async () => {
    await editLocks(tool.locks, (text) =>
      locked.reduce((edited, { baseName, locks }) => tool.locks.replaced(edited, baseName, locks), text),
    );
    machine.stale(tool.database);
  });
}
