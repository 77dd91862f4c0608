import { MusterError } from '@muster/protocol';
import {
  dueForDrift,
  missedDriftDue,
  pullInDriftDue,
  scheduledChecks,
  setDriftDue,
} from '../../store/queries/drift-schedule.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import type { Fence } from '../shared/leases.ts';
import { checkStatements } from './drift.ts';

/**
 * Scheduled drift checks. The row of each machine stores when its next check is due. A restart loses no turn, and a sweep
 * reads only the rows that are due.
 */

export interface SweepRules {
  /** Average seconds between two checks of a machine. */
  readonly interval: number;
  /** Maximum number of machines checked at one time. */
  readonly maxConcurrent: number;
  /** Seconds after an apply in which the machine is not checked, unless its latest record is outdated. */
  readonly skipRecentlyApplied: number;
  /** Random number in [0, 1). */
  readonly random: () => number;
}

/** Delay before a machine with an open operation is considered again, seconds. */
const busySecs = 15;
/** Maximum seconds between the record of a connection and the agent counting as connected. */
const welcomeSecs = 60;
/** Maximum rows read at one time when many must be rescheduled. */
const maxAtOnce = 500;
/** Random share of the interval that is added or subtracted, so that agents that are due together spread over time. */
const spread = 0.2;

/** The decision on an agent that is due. */
export type Turn = 'check' | { due: number | null };

interface Due {
  status: 'pending' | 'approved' | 'rejected' | null;
  connected_at: number | null;
  snapshot_operation_id: string | null;
  /** When the last apply ended, Unix seconds. */
  updated_at: number;
  open_operation: string | null;
  /** Status of the latest record. */
  latest_status: 'in_sync' | 'drifted' | 'failed' | 'cancelled' | null;
  latest_snapshot: string | null;
}

/**
 * Whether the latest record shows drift from before the last apply, which may have corrected the drift. The record should not
 * remain the latest one for a whole interval.
 */
const isOutdated = ({ snapshot_operation_id, latest_status, latest_snapshot }: Due): boolean =>
  latest_status !== null && latest_status !== 'in_sync' && latest_snapshot !== snapshot_operation_id;

/** @param connected whether the agent is connected now */
export function turnOf(row: Due, connected: boolean, now: number, rules: SweepRules): Turn {
  if (row.snapshot_operation_id === null) return { due: null };
  if (row.status !== 'approved') return { due: null };
  // The machine missed its turn and gets it when it returns. An agent that is just connecting gets it soon.
  if (!connected) return { due: Math.abs(now - (row.connected_at ?? 0)) < welcomeSecs ? now + busySecs : null };
  // A wrong clock may have recorded the apply in the future.
  const settled = Math.min(row.updated_at, now) + rules.skipRecentlyApplied;
  if (settled > now && !isOutdated(row)) return { due: settled + Math.round(rules.interval * spread * rules.random()) };
  if (row.open_operation !== null) return { due: now + busySecs };
  return 'check';
}

/** Time of the next turn after one now, Unix seconds: the interval with random spread. */
export const nextTurn = (now: number, { interval, random }: SweepRules): number =>
  now + Math.max(1, Math.round(interval * (1 + spread * (random() - 0.5))));

/** The latest plausible due time. Later ones were set with another interval or by a wrong clock. */
const latestTurn = (now: number, { interval, skipRecentlyApplied }: SweepRules): number =>
  now + Math.ceil(interval * (1 + spread)) + skipRecentlyApplied + busySecs;

/** Makes machines with implausibly late turns due now. */
export async function pullIn({ db, now }: Context, rules: SweepRules, fence: Fence): Promise<void> {
  const at = seconds(now());
  const pull = statement(pullInDriftDue, { now: at, latest: latestTurn(at, rules) });
  await db.write({ name: 'drift/pull in', statements: [...fence, pull] });
}

/** Whether any machine is due. */
export async function anyDue({ db, now }: Context): Promise<boolean> {
  return (await db.get(dueForDrift, { now: seconds(now()), limit: 1 })) !== undefined;
}

/**
 * Queues the checks that are due, up to the maximum in progress, and reschedules the other machines that are due.
 * @returns the ids of the operations
 */
export async function queueDue(context: Context, rules: SweepRules, fence: Fence): Promise<string[]> {
  const { db, presence } = context;
  const now = seconds(context.now());
  // The check of a disconnected agent takes no slot.
  const underWay = (await db.all(scheduledChecks, {})).filter(({ node_id }) => presence.isConnected(node_id)).length;
  const queued: string[] = [];
  let limit = rules.maxConcurrent - underWay;
  while (queued.length + underWay < rules.maxConcurrent) {
    const rows = await db.all(dueForDrift, { now, limit: Math.min(limit, maxAtOnce) });
    const moved: Statement[] = [];
    const parked: string[] = [];
    const checks: Parameters<typeof queueOne>[2][] = [];
    for (const row of rows) {
      const { node_id } = row;
      const seen = row.drift_due_at ?? 0;
      const turn = turnOf(row, presence.isConnected(node_id), now, rules);
      if (turn === 'check') {
        if (queued.length + underWay + checks.length >= rules.maxConcurrent) break;
        checks.push({ ...row, seen, next: nextTurn(now, rules) });
      } else {
        moved.push(statement(setDriftDue, { node_id, seen, due_at: turn.due }));
        if (turn.due === null && row.status === 'approved') parked.push(node_id);
      }
    }
    if (moved.length > 0) await db.write({ name: 'drift/move', statements: [...fence, ...moved] });
    await unparkReturned(context, parked, now);
    const ids = await Promise.all(checks.map((check) => queueOne(context, fence, check)));
    queued.push(...ids.filter((id) => id !== null));
    if (moved.length + checks.length < rows.length || rows.length < Math.min(limit, maxAtOnce)) break;
    // Many machines must be rescheduled, such as after a downtime of the orchestrator.
    limit = maxAtOnce;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return queued;
}

/** Makes agents due that reconnected between the query and the write: the missed turn was not recorded when they connected. */
async function unparkReturned({ db, presence }: Context, nodeIds: readonly string[], now: number): Promise<void> {
  const back = nodeIds.filter((nodeId) => presence.isConnected(nodeId));
  const statements = back.map((node_id) => statement(missedDriftDue, { node_id, now }));
  if (statements.length > 0) await db.write({ name: 'drift/missed', statements });
}

/** @returns null when the agent is no longer due or not approved */
async function queueOne(
  context: Context,
  fence: Fence,
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
    await context.db.write({ name: 'drift/schedule', statements: [...fence, move, ...check] });
  } catch (error) {
    if (error instanceof MusterError && (error.code === 'agent_changed' || error.code === 'agent_not_approved'))
      return null;
    throw error;
  }
  context.bus.publish({ type: 'work', node_id });
  return operation_id;
}
