import { editLockList, lockLine, type VersionLock, withLocks } from '../../host/packages/version-locks.ts';
import { recordingFailures, releasesHold } from '../package-hold/package-hold.ts';
import type { Item, Machine, Outcome } from '../provider/provider.ts';
import {
  baseNameIn,
  bodyOf,
  isDeclaredAbsent,
  type PackageBefore,
  rpmDatabase,
  type SeenPackage,
  seenIn,
} from './seen.ts';

type PackageItem = Item<SeenPackage, PackageBefore>;

/** Reports whether the package must be released before its change, because dnf offers no other version of it. */
export const mustBeReleased = (item: PackageItem): boolean =>
  item.seen.locked && releasesHold(item, item.before?.locks !== undefined);

/**
 * Returns the locks that the package must have after its change, or null if they do not change. A failed change keeps
 * the previous locks.
 * @param installed the installed version after the change
 */
export function locksAfter(
  item: PackageItem,
  baseName: string,
  installed: SeenPackage['installed'],
  hasFailed: boolean,
): readonly VersionLock[] | null {
  const { kind, resource, seen, before } = item;
  const found = seen.locks ?? [];
  if (hasFailed) return mustBeReleased(item) ? found : null;
  if (kind === 'remove') return before?.locks ?? null;
  if (isDeclaredAbsent(resource) || bodyOf(resource).hold !== true || installed === null) return null;
  if (seen.locked && !mustBeReleased(item)) return null;
  return [{ at: found[0]?.at ?? 0, line: lockLine(baseName, installed) }];
}

/**
 * Releases the packages that the agent changes. If the agent is killed before `hold`, the next attempt observes that the
 * lock is missing, and adds it.
 * @throws HostFailure
 */
export async function release(items: readonly PackageItem[], machine: Machine): Promise<void> {
  const database = await machine.database(rpmDatabase);
  const names = items.filter(mustBeReleased).map(({ resource }) => baseNameIn(database, bodyOf(resource).name));
  if (names.length === 0) return;
  await editLockList((text) => names.reduce((edited, name) => withLocks(edited, name, []), text));
  machine.stale(rpmDatabase);
}

/** Locks packages after their change. Records a failure for each package that cannot be locked. */
export async function hold(
  items: readonly PackageItem[],
  outcomes: Map<PackageItem, Outcome>,
  machine: Machine,
): Promise<void> {
  const database = await machine.database(rpmDatabase);
  const locked = items.flatMap((item) => {
    const { name } = bodyOf(item.resource);
    const baseName = baseNameIn(database, name);
    const hasFailed = outcomes.get(item)?.failure !== undefined;
    const locks = locksAfter(item, baseName, seenIn(database, name).installed, hasFailed);
    return locks === null ? [] : [{ item, baseName, locks }];
  });
  if (locked.length === 0) return;
  const held = locked.map(({ item }) => item);
  await recordingFailures(held, outcomes, async () => {
    await editLockList((text) =>
      locked.reduce((edited, { baseName, locks }) => withLocks(edited, baseName, locks), text),
    );
    machine.stale(rpmDatabase);
  });
}
