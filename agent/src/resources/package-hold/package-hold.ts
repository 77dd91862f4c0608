import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import type { Item, Outcome } from '../provider/provider.ts';

/** Holds of apt and locks of other package managers, which keep a package at its version. */

type Change = Pick<Item, 'kind' | 'resource' | 'difference'>;

const packageFields: ReadonlySet<string> = new Set(['ensure', 'version', 'state']);

/** Reports whether the change installs, reinstalls, or removes the package, not only its hold. */
export const changesPackage = ({ difference }: Pick<Item, 'difference'>): boolean =>
  difference.changes.some(({ field }) => packageFields.has(field));

/**
 * Reports whether a held package must be released before its change. Only a module that manages the hold may release it.
 * @param hasRecord whether the module recorded the original hold
 */
export function releasesHold(item: Change, hasRecord: boolean): boolean {
  const { kind, difference, resource } = item;
  const { hold } = (resource as ResolvedResource<'package-apt' | 'package-dnf'>).body;
  const isManaged = kind === 'apply' ? hold != null : hasRecord;
  const endsHold = difference.changes.some(({ field, to }) => field === 'hold' && to === 'false');
  return isManaged && (endsHold || changesPackage(item));
}

/** Holds packages after their change. Records a failure for each package that cannot be held. */
export async function recordingFailures<T>(
  items: readonly T[],
  outcomes: Map<T, Outcome>,
  hold: () => Promise<void>,
): Promise<void> {
  try {
    await hold();
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    for (const item of items) {
      const outcome = outcomes.get(item) ?? {};
      const failure = [outcome.failure, error.message].filter((text) => text !== undefined).join('; ');
      outcomes.set(item, { ...outcome, failure });
    }
  }
}
