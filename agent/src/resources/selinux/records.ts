import { HostFailure } from '../../host/failure.ts';
import { type Context, type LocalRecords, missingForRecords, missingTools, readRecords } from '../../host/selinux.ts';
import type { Database, Difference, Machine, Outcome } from '../provider/provider.ts';

/** Local records of the SELinux policy, which are read once for all resources. */

const localRecords: Database<LocalRecords> = { name: 'local SELinux records', read: readRecords };

export const records = (machine: Machine): Promise<LocalRecords> => machine.database(localRecords);

/** Why a resource cannot be applied; null if it can. */
export type Unmet = string | null;

export const unmetNow = (): Unmet => missingForRecords();

/** Returns the prerequisite that an earlier resource may provide, such as the package with the programs. */
export const awaiting = (unmet: Unmet): Pick<Difference, 'awaits'> =>
  unmet === null ? {} : { awaits: [{ kind: 'programs', message: unmet }] };

/** Message of a removal if nothing is left to restore. */
export const goneMessage = 'the machine no longer has the policy or the programs to change it';

/**
 * Runs a change and checks that it has the intended effect, because SELinux records some booleans and types under other
 * names.
 * @param isDone whether the records have the intended content
 * @param message what to do if the records do not have the intended content
 */
export async function changeRecords(
  machine: Machine,
  change: () => Promise<void>,
  isDone: (records: LocalRecords) => boolean,
  message: string,
): Promise<Outcome> {
  try {
    await change();
  } finally {
    machine.stale(localRecords);
  }
  if (!isDone(await records(machine))) throw new HostFailure(message);
  return {};
}

/** Reports whether records can be restored. This needs the programs, but SELinux may be off. */
export const canRestore = (): boolean => missingTools() === null;

/** Reports whether a record has all declared fields. */
export const hasFields = (record: Context | null, declared: Partial<Context>): boolean =>
  record !== null &&
  (['user', 'type', 'range'] as const).every(
    (field) => declared[field] === undefined || declared[field] === record[field],
  );
