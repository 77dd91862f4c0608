import type { DpkgDatabase } from '../../host/packages/dpkg.ts';
import { recordingFailures, releasesHold } from '../package-hold/package-hold.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { mark } from './install.ts';
import { bodyOf, dpkgDatabase, isDeclaredAbsent, isThere, type PackageItem, seenIn } from './seen.ts';

/** Reports whether the package must be released before its change, because apt refuses to change a held package. */
export const mustBeReleased = (item: PackageItem): boolean =>
  item.seen.held && releasesHold(item, item.before?.held !== undefined);

/** Reports whether the package must be on hold after its change. A failed change keeps the previous hold. */
export function mustBeHeld(item: PackageItem, hasFailed: boolean): boolean {
  if (hasFailed) return mustBeReleased(item);
  if (item.kind === 'remove') return item.before?.held === true;
  return !isDeclaredAbsent(item.resource) && bodyOf(item.resource).hold === true;
}

const namesOf = (items: readonly PackageItem[]): string[] => items.map(({ resource }) => bodyOf(resource).name);

/**
 * Releases the packages that the agent changes. `--allow-change-held-packages` would also let apt change packages that
 * others hold. If the agent is killed before `hold`, the next attempt observes that the hold is missing, and adds it.
 * @throws HostFailure
 */
export const release = (items: readonly PackageItem[], machine: Machine): Promise<void> =>
  mark('unhold', namesOf(items.filter(mustBeReleased)), machine);

/** Puts packages on hold after their change. Records a failure for each package that cannot be held. */
export async function hold(
  items: readonly PackageItem[],
  outcomes: Map<PackageItem, Outcome>,
  machine: Machine,
): Promise<void> {
  const database = await machine.database(dpkgDatabase);
  const lacking = items.filter(
    (item) => mustBeHeld(item, outcomes.get(item)?.failure !== undefined) && canBeHeld(item, database),
  );
  await recordingFailures(lacking, outcomes, () => mark('hold', namesOf(lacking), machine));
}

/** Reports whether the package is installed and not on hold yet. */
function canBeHeld({ resource }: PackageItem, database: DpkgDatabase): boolean {
  const { state, held } = seenIn(database, bodyOf(resource).name);
  return isThere(state) && !held;
}
