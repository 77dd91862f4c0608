import type { AgentStatus } from '@muster/protocol/http';
import { countUnplaced } from '../../store/queries/audit.ts';
import {
  agentsByStatus,
  countOfActiveTerminals,
  openOperationsByStatus,
  waitingDeliveries,
} from '../../store/queries/overview.ts';
import type { Context } from '../shared/context.ts';

export interface Census {
  readonly agents: Readonly<Record<AgentStatus, number>>;
  readonly operations: Readonly<Record<'queued' | 'running', number>>;
  readonly terminals: number;
  /** Number of messages waiting for delivery, counted up to {@link maxDeliveries}. */
  readonly deliveries: number;
  readonly unplacedEvents: number;
}

const maxDeliveries = 100_000;

export const countStatus = (rows: readonly { status: string; count: number }[], status: string): number =>
  Number(rows.find((row) => row.status === status)?.count ?? 0);

/** Counts agents by status, and open operations. */
export async function takeCounts({ db }: Context): Promise<Pick<Census, 'agents' | 'operations'>> {
  const [agents, operations] = await Promise.all([db.all(agentsByStatus, {}), db.all(openOperationsByStatus, {})]);
  return {
    agents: {
      pending: countStatus(agents, 'pending'),
      approved: countStatus(agents, 'approved'),
      rejected: countStatus(agents, 'rejected'),
    },
    operations: { queued: countStatus(operations, 'queued'), running: countStatus(operations, 'running') },
  };
}

export async function takeCensus(context: Context): Promise<Census> {
  const { db } = context;
  const [counts, terminals, deliveries, unplaced] = await Promise.all([
    takeCounts(context),
    db.get(countOfActiveTerminals, {}),
    db.get(waitingDeliveries, { max: maxDeliveries }),
    db.get(countUnplaced, {}),
  ]);
  return {
    ...counts,
    terminals: Number(terminals?.count ?? 0),
    deliveries: Number(deliveries?.count ?? 0),
    unplacedEvents: Number(unplaced?.count ?? 0),
  };
}

const freshMs = 10_000;

/**
 * Returns a function that returns the counts for metrics, and reads them at most every ten seconds. While the database
 * is unavailable, the function returns the last counts, or null if there are none.
 */
export function createCensus(context: Context): () => Promise<Census | null> {
  let last: Census | null = null;
  let takenAt = Number.NEGATIVE_INFINITY;
  let taking: Promise<void> | null = null;
  return async () => {
    if (context.now() - takenAt >= freshMs || context.now() < takenAt) {
      taking ??= takeCensus(context)
        .then((census) => {
          last = census;
        })
        .catch((error: unknown) =>
          context.log.warn({ err: error }, 'failed to count agents and operations for metrics'),
        )
        .finally(() => {
          takenAt = context.now();
          taking = null;
        });
      await taking;
    }
    return last;
  };
}
