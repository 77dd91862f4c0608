import { randomBytes, randomFillSync } from 'node:crypto';
import type { Logger } from 'pino';
import type { Clock } from '../../../lib/src/clock.ts';
import type { Bus } from '../bus/bus.ts';
import { announcingEvents } from '../domain/audit/announce-events.ts';
import { AgentRecords } from '../domain/shared/agent-records.ts';
import type { Context, Presence } from '../domain/shared/context.ts';
import { createIds } from '../domain/shared/ids.ts';
import { createModuleDocuments } from '../domain/shared/module-documents.ts';
import { lastDriftId } from '../store/queries/drift.ts';
import { lastOperationId } from '../store/queries/operations/operations.ts';
import type { Store } from './store.ts';

export interface ContextParts {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Logger;
  readonly presence: Presence;
  readonly incarnation: string;
  readonly isReplica: boolean;
}

/** Creates the dependencies that all domain modules share. */
export async function createContext(
  { db, secretKeys }: Store,
  { bus, clock, log, presence, incarnation, isReplica }: ContextParts,
): Promise<Context> {
  // With PostgreSQL, the clock returns the database server's time.
  const startedAt = clock.now() - clock.monotonic();
  const ids = createIds(() => clock.now(), bufferedRandom());
  // Operations run in the order of their ids, so ids must increase across restarts, even if the clock was set back.
  // After a drift check, only its drift record remains, which has the operation's ID.
  for (const id of [(await db.get(lastOperationId, {}))?.operation_id, (await db.get(lastDriftId, {}))?.drift_id])
    if (id !== undefined) ids.passId(id);
  const agentRecords = new AgentRecords(announcingEvents(db, bus));
  return {
    db: agentRecords.db,
    agentRecords,
    bus,
    incarnation,
    isReplica,
    log,
    now: () => clock.now(),
    steadyNow: () => (db.kind === 'postgres' ? clock.now() : Math.floor(startedAt + clock.monotonic())),
    ...ids,
    randomBytes: (length) => randomBytes(length),
    secretKeys,
    documents: createModuleDocuments(db),
    presence,
  };
}

/**
 * Returns a generator of random numbers in [0, 1) from a pool of secure bytes. A ULID needs 16 numbers, and a system
 * call for each would be slow.
 */
function bufferedRandom(): () => number {
  const pool = Buffer.alloc(4096);
  let next = pool.length;
  return () => {
    if (next === pool.length) {
      randomFillSync(pool);
      next = 0;
    }
    return pool.readUInt8(next++) / 256;
  };
}
