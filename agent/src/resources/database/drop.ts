import type { FieldChange } from '@muster/protocol';
import { expectAnswer, goneMessage, type NoServer } from '../../host/databases/no-server.ts';
import { HostFailure } from '../../host/failure.ts';
import { type Difference, nothing, presenceDrift, restoring } from '../provider/provider.ts';

/** Decides whether to drop a database, for all kinds of servers. */

export const refusal = (name: string): string =>
  `the database ${name} is not dropped, because its data could not be restored: declare \`force: true\` to drop it with its data`;

/**
 * @param before state of the database before the agent first changed it, and whether the agent dropped it
 * @param exists whether the database exists now
 * @param changes the changes that restore the previous attributes of an existing database
 * @throws HostFailure if the database would be dropped without `force`
 */
export function diffRemovalOfDatabase(
  { name, force }: { name: string; force?: boolean | undefined },
  before: { was: 'absent' } | { was: 'database'; dropped?: boolean },
  { missing, exists }: { missing: NoServer | null; exists: boolean },
  changes: readonly FieldChange[],
): Difference {
  expectAnswer(missing, false);
  if (missing !== null) return nothing(goneMessage);
  if (before.was === 'absent') {
    if (!exists) return nothing('already removed');
    if (force !== true)
      throw new HostFailure(
        `${refusal(name)} when the resource is removed, and apply it once before; or run DROP DATABASE yourself`,
      );
    return presenceDrift();
  }
  if (!exists)
    return nothing(
      before.dropped === true
        ? 'it was dropped with its data, which cannot be restored'
        : 'already removed, but not by the agent, so the agent does not create it again',
    );
  return restoring([...changes]);
}
