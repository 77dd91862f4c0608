import { HostFailure } from '../../host/failure.ts';
import type { DpkgDatabase } from '../../host/packages/dpkg.ts';
import type { Machine, Outcome } from '../provider/provider.ts';
import { mark } from './install.ts';
import { bodyOf, dpkgDatabase, isDeclaredAbsent, isThere, type PackageItem, seenIn } from './seen.ts';

const changesPackage: ReadonlySet<string> = new Set(['ensure', 'version', 'state']);

/** Reports whether the module manages the hold. If so, the agent may release it for its own change. */
const isManaged = ({ kind, resource, before }: PackageItem): boolean =>
  kind === 'apply' ? bodyOf(resource).hold != null : before?.held !== undefined;

/** Reports whether the package must be released before its change, because apt refuses to change a held package. */
export const mustBeReleased = (item: PackageItem): boolean =>
  item.seen.held &&
  isManaged(item) &&
  item.difference.changes.some(({ field, to }) => changesPackage.has(field) || (field === 'hold' && to === 'false'));

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
  try {
    await mark('hold', namesOf(lacking), machine);
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    for (const item of lacking) {
      const outcome = outcomes.get(item) ?? {};
      const failure = [outcome.failure, error.message].filter((text) => text !== undefined).join('; ');
      outcomes.set(item, { ...outcome, failure });
    }
  }
}

/** Reports whether the package is installed and not on hold yet. */
function canBeHeld({ resource }: PackageItem, database: DpkgDatabase): boolean {
  const { state, held } = seenIn(database, bodyOf(resource).name);
  return isThere(state) && !held;
}
