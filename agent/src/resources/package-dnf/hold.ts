import { HostFailure } from '../../host/failure.ts';
import { editLockList, lockLine, type VersionLock, withLocks } from '../../host/packages/version-locks.ts';
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

const changesPackage: ReadonlySet<string> = new Set(['ensure', 'version']);

/** Reports whether the module manages the lock. If so, the agent may release it for its own change. */
const isManaged = ({ kind, resource, before }: PackageItem): boolean =>
  kind === 'apply' ? bodyOf(resource).hold != null : before?.locks !== undefined;

/** Reports whether the package must be released before its change, because dnf offers no other version of it. */
export const mustBeReleased = (item: PackageItem): boolean =>
  item.seen.locked &&
  isManaged(item) &&
  item.difference.changes.some(({ field, to }) => changesPackage.has(field) || (field === 'hold' && to === 'false'));

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
  try {
    await editLockList((text) =>
      locked.reduce((edited, { baseName, locks }) => withLocks(edited, baseName, locks), text),
    );
    machine.stale(rpmDatabase);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    for (const { item } of locked) {
      const outcome = outcomes.get(item) ?? {};
      const failure = [outcome.failure, error.message].filter((text) => text !== undefined).join('; ');
      outcomes.set(item, { ...outcome, failure });
    }
  }
}
