import { MusterError } from '@muster/protocol';
import {
  dueForDrift,
  missedDriftDue,
  pullInDriftDue,
  scheduledChecks,
  setDriftDue,
} from '../../store/queries/drift-schedule.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { passOpenOperations } from '../operations/operation-order.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { checkStatements } from './drift.ts';

/**
 * Schedules drift checks. Each machine's row contains the time at which its next check is due, so that a restart loses
 * no check and a sweep reads only the rows that are due. The caller fences the context, so that only one process
 * schedules.
 */

export interface SweepRules {
  /** Average seconds between checks of a machine. */
  readonly interval: number;
  /** Maximum number of machines checked at the same time. */
  readonly maxConcurrent: number;
  /** Seconds after an apply during which the machine is not checked, unless its latest record is outdated. */
  readonly skipRecentlyApplied: number;
  /** Random number in [0, 1). */
  readonly random: () => number;
}

/** Seconds before a machine with an open operation is considered again. */
const busySecs = 15;
/** Maximum delay between the recording of a connection and the time when the agent counts as connected, in seconds. */
const connectingSecs = 60;
/** Maximum number of rows to read at a time if many must be rescheduled. */
const maxAtOnce = 500;
/**
 * Fraction of the interval over which due times are spread randomly, so that checks do not stay due at the same time.
 */
const spread = 0.2;

/**
 * Whether to check a due agent, or when to reschedule it, in Unix seconds. If `due` is null, the agent is checked when
 * it reconnects.
 */
export type Decision = 'check' | { due: number | null };

interface Due {
  status: 'pending' | 'approved' | 'rejected' | null;
  connected_at: number | null;
  snapshot_operation_id: string | null;
  /** When the last apply ended, Unix seconds. */
  updated_at: number;
  open_operation: string | null;
  latest_status: 'in_sync' | 'drifted' | 'failed' | 'cancelled' | null;
  latest_snapshot: string | null;
}

/**
 * Reports whether the latest record shows drift from before the last apply. The apply may have corrected that drift, so
 * a new check replaces the record before the interval ends.
 */
const isOutdated = ({ snapshot_operation_id, latest_status, latest_snapshot }: Due): boolean =>
  latest_status !== null && latest_status !== 'in_sync' && latest_snapshot !== snapshot_operation_id;

/**
 * Decides whether to check a due agent.
 * @param connected whether the agent is currently connected
 */
export function decide(row: Due, connected: boolean, now: number, rules: SweepRules): Decision {
  if (row.snapshot_operation_id === null) return { due: null };
  if (row.status !== 'approved') return { due: null };
  // A disconnected machine misses its check and is checked when it reconnects. The check of an agent that has just
  // connected is postponed briefly.
  if (!connected) return { due: Math.abs(now - (row.connected_at ?? 0)) < connectingSecs ? now + busySecs : null };
  // If the clock was wrong, the recorded time of the apply may be in the future.
  const skipUntil = Math.min(row.updated_at, now) + rules.skipRecentlyApplied;
  if (skipUntil > now && !isOutdated(row))
    return { due: skipUntil + Math.round(rules.interval * spread * rules.random()) };
  if (row.open_operation !== null) return { due: now + busySecs };
  return 'check';
}

/** Returns when a machine that is checked at `now` is due again, in Unix seconds. */
export const nextDue = (now: number, { interval, random }: SweepRules): number =>
  now + Math.max(1, Math.round(interval * (1 + spread * (random() - 0.5))));

/** Returns the latest plausible due time. A later due time results from a different interval or a wrong clock. */
const latestDue = (now: number, { interval, skipRecentlyApplied }: SweepRules): number =>
  now + Math.ceil(interval * (1 + spread)) + skipRecentlyApplied + busySecs;

/** Makes machines with implausibly late due times due now. */
export async function pullIn({ db, now }: Context, rules: SweepRules): Promise<void> {
  const at = seconds(now());
  const pull = statement(pullInDriftDue, { now: at, latest: latestDue(at, rules) });
  await db.write({ name: 'drift/pull in', statements: [pull] });
}

export async function anyDue({ db, now }: Context): Promise<boolean> {
  return (await db.get(dueForDrift, { now: seconds(now()), limit: 1 })) !== undefined;
}

/**
 * Queues due checks, up to the maximum number of concurrent checks, and reschedules the other due machines.
 * @returns the ids of the queued operations
 */
export async function queueDue(context: Context, rules: SweepRules): Promise<string[]> {
  const { db, presence } = context;
  const now = seconds(context.now());
  // A disconnected agent's check does not count toward the maximum.
  const underWay = (await db.all(scheduledChecks, {})).filter(({ node_id }) => presence.isConnected(node_id)).length;
  const queuedIds: string[] = [];
  let limit = rules.maxConcurrent - underWay;
  while (queuedIds.length + underWay < rules.maxConcurrent) {
    const rows = await db.all(dueForDrift, { now, limit: Math.min(limit, maxAtOnce) });
    const moved: Statement[] = [];
    const parked: string[] = [];
    const checks: Parameters<typeof queueOne>[1][] = [];
    for (const row of rows) {
      const { node_id } = row;
      const seen = row.drift_due_at ?? 0;
      const turn = decide(row, presence.isConnected(node_id), now, rules);
      if (turn === 'check') {
        if (queuedIds.length + underWay + checks.length >= rules.maxConcurrent) break;
        checks.push({ ...row, seen, next: nextDue(now, rules) });
      } else {
        moved.push(statement(setDriftDue, { node_id, seen, due_at: turn.due }));
        if (turn.due === null && row.status === 'approved') parked.push(node_id);
      }
    }
    if (moved.length > 0) await db.write({ name: 'drift/move', statements: moved });
    await unparkReturned(context, parked, now);
    await passOpenOperations(
      context,
      checks.map(({ node_id }) => node_id),
    );
    const ids = await Promise.all(checks.map((check) => queueOne(context, check)));
    queuedIds.push(...ids.filter((id) => id !== null));
    if (moved.length + checks.length < rows.length || rows.length < Math.min(limit, maxAtOnce)) break;
    // Many machines must be rescheduled, for example after orchestrator downtime.
    limit = maxAtOnce;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return queuedIds;
}

/**
 * Makes agents due that reconnected between the query and the write, because their connections were recorded before
 * their missed checks.
 */
async function unparkReturned({ db, presence }: Context, nodeIds: readonly string[], now: number): Promise<void> {
  const back = nodeIds.filter((nodeId) => presence.isConnected(nodeId));
  const statements = back.map((node_id) => statement(missedDriftDue, { node_id, now }));
  if (statements.length > 0) await db.write({ name: 'drift/missed', statements });
}

/**
 * Queues a check of one agent.
 * @returns null if the agent is no longer due or not approved
 */
async function queueOne(
  context: Context,
  agent: { node_id: string; snapshot_operation_id: string | null; seen: number; next: number },
): Promise<string | null> {
  const { node_id, seen, next } = agent;
  const operation_id = context.newId();
  const move = statement(setDriftDue, { node_id, seen, due_at: next }, { expect: 'changed', else: 'agent_changed' });
  const check = checkStatements(context, {
    operation_id,
    node_id,
    requested_by: systemActor.id,
    trigger: 'schedule',
    snapshot_operation_id: agent.snapshot_operation_id,
  });
  try {
    await context.db.write({ name: 'drift/schedule', statements: [move, ...check] });
  } catch (error) {
    if (error instanceof MusterError && (error.code === 'agent_changed' || error.code === 'agent_not_approved'))
      return null;
    throw error;
  }
  context.bus.publish({ type: 'work', node_id });
  return operation_id;
}
