import { encodeTime } from 'ulid';
import {
  deleteDriftRecords,
  deleteLatestDrift,
  deleteOperations,
  deletePayloads,
  deleteRuns,
  oldDriftRecords,
  operationIds,
  runIds,
  unneededPayloads,
} from '../../store/retention.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Context, seconds } from '../shared/context.ts';

/** Deletes old records in small batches, so that other writes do not wait long. */

export interface Retention {
  /** Days for which drift records are kept; 0 keeps them forever. */
  readonly driftDays: number;
  /** Days for which operations and runs are kept after they end; 0 keeps them forever. */
  readonly operationDays: number;
}

const atOnce = 200;
const daySecs = 86_400;
/**
 * Seconds for which unused payloads are kept, because the same desired state or an apply that is bound to the plan may
 * need them.
 */
const payloadRetentionSecs = daySecs;

const pause = () => new Promise((resolve) => setImmediate(resolve));

/** Deletes payloads that no operation needs. */
export async function prunePayloads(context: Context): Promise<void> {
  const since = seconds(context.now()) - payloadRetentionSecs;
  for (;;) {
    const rows = await context.db.all(unneededPayloads, { since, limit: atOnce });
    if (rows.length === 0) return;
    const digests = rows.map(({ digest }) => digest);
    await context.db.write({
      name: 'payloads/prune',
      statements: [statement(deletePayloads, { digests, since })],
    });
    if (rows.length < atOnce) return;
    await pause();
  }
}

async function pruneDrift({ db }: Context, before: number): Promise<void> {
  for (;;) {
    const rows = await db.all(oldDriftRecords, { before, limit: atOnce });
    if (rows.length === 0) return;
    const ids = rows.map(({ drift_id }) => drift_id);
    await db.write({
      name: 'drift/prune',
      statements: [statement(deleteLatestDrift, { ids }), statement(deleteDriftRecords, { ids })],
    });
    if (rows.length < atOnce) return;
    await pause();
  }
}

/**
 * Deletes records that were requested before a time, in one pass over their ids, which increase with time. Skips
 * records that must be kept.
 */
async function pruneById(
  { db }: Context,
  name: string,
  before: number,
  page: (range: { after: string; below: string; limit: number }) => Promise<string[]>,
  remove: (ids: string[]) => Statement,
): Promise<void> {
  const below = encodeTime(before * 1000, 10);
  for (let after = ''; ; ) {
    const ids = await page({ after, below, limit: atOnce });
    if (ids.length > 0) await db.write({ name, statements: [remove(ids)] });
    if (ids.length < atOnce) return;
    after = ids.at(-1) as string;
    await pause();
  }
}

export async function pruneHistory(context: Context, { driftDays, operationDays }: Retention): Promise<void> {
  const { db } = context;
  const now = seconds(context.now());
  if (driftDays > 0) await pruneDrift(context, now - driftDays * daySecs);
  if (operationDays === 0) return;
  const before = Math.max(0, now - operationDays * daySecs);
  // Runs are deleted before operations, because their results refer to operations.
  await pruneById(
    context,
    'runs/prune',
    before,
    async (range) => (await db.all(runIds, range)).map(({ run_id }) => run_id),
    (ids) => statement(deleteRuns, { ids, before }),
  );
  await pruneById(
    context,
    'operations/prune',
    before,
    async (range) => (await db.all(operationIds, range)).map(({ operation_id }) => operation_id),
    (ids) => statement(deleteOperations, { ids, before }),
  );
}
