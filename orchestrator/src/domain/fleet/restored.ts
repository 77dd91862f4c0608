import { fromJson, type JsonText } from '../../store/json-text.ts';
import { revokeAllEnrolmentTokens } from '../../store/queries/agents/enrollment.ts';
import { oldestOpenOperations } from '../../store/queries/operations/operation-end.ts';
import { openRuns } from '../../store/queries/runs.ts';
import { deleteSetting, setting } from '../../store/queries/settings.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { announceEnd, endStatements, ignoreFinished } from '../operation-end/operation-end.ts';
import { haltRun } from '../runs/run-end.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { fencedBy, type Lease, LeaseLost } from '../shared/leases.ts';

/**
 * Repairs a database that was restored from a backup. Operations that were in progress at the time of the backup have
 * continued since, so their outcomes are unknown. These operations are ended, and agents do not repeat them.
 */

export const restoredKey = 'restored_from';

export interface RestoredFrom {
  readonly id: string;
  readonly created_at: string;
}

const atOnce = 500;
const reason = 'the orchestrator was restored from a backup, so the outcome is unknown';

/**
 * Repairs the database if it was restored, or waits until another process has done so. Call this before agents are
 * admitted.
 * @param lease the maintenance lease
 * @param pause waits between two attempts to acquire the lease. Rejects if the process must stop, which ends the wait
 * @returns the restored backup if this process repaired the database; otherwise, null
 */
export async function repairRestored(
  context: Context,
  lease: Lease,
  pause: () => Promise<void>,
): Promise<RestoredFrom | null> {
  while (await context.db.get(setting, { key: restoredKey })) {
    const fence = await lease.hold();
    if (fence !== null)
      try {
        return await endRestoredOperations(fencedBy(context, fence));
      } catch (error) {
        if (!(error instanceof LeaseLost)) throw error;
      }
    await pause();
  }
  return null;
}

/**
 * Ends the operations and runs that were open in the backup, and revokes all enrollment tokens.
 * @returns the restored backup; null if the database was not restored or is already repaired
 */
async function endRestoredOperations(context: Context): Promise<RestoredFrom | null> {
  const { db } = context;
  const found = await db.get(setting, { key: restoredKey });
  if (!found) return null;
  const from = fromJson(found.value as JsonText<RestoredFrom>);
  for (;;) {
    const open = await db.all(oldestOpenOperations, { limit: atOnce });
    for (const operation of open) {
      const label = await agentLabel(context, operation.node_id);
      const ending = { status: 'interrupted', error: reason, summary: null, startedAt: null } as const;
      try {
        const statements = endStatements(context, operation, ending, systemActor, label);
        await db.write({ name: 'operations/restored', statements });
        announceEnd(context, operation, 'interrupted');
      } catch (error) {
        ignoreFinished(error);
      }
    }
    if (open.length < atOnce) break;
  }
  for (const { run_id } of await db.all(openRuns, {}))
    await haltRun(context, run_id, 'the orchestrator was restored from a backup');
  // Any token may have been used since the backup. Revokes them in the last transaction, so that an interrupted startup
  // repeats the other transactions.
  await db.write({
    name: 'restored/settle',
    statements: [
      statement(revokeAllEnrolmentTokens, { now: seconds(context.now()) }),
      statement(deleteSetting, { key: restoredKey }),
      audited(context, {
        type: 'system.restored',
        actor: systemActor,
        summary: `the orchestrator was restored from the backup of ${from.created_at}`,
        metadata: { backup_id: from.id, backup_created_at: from.created_at },
      }),
    ],
  });
  return from;
}
