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
 * Checks for drift by schedule. Each machine has its own time, in its row, moved on with each turn; so a restart forgets
 * nothing, and a look costs what is due.
 */

export interface SweepRules {
  /** Seconds between two checks of a machine, more or less. */
  readonly interval: number;
  /** Machines checked at one time. */
  readonly maxConcurrent: number;
  /** A machine that was applied to within so many seconds is left alone for the rest of them, unless its latest record is outdated by that. */
  readonly skipRecentlyApplied: number;
  /** In [0, 1). */
  readonly random: () => number;
}

/** One that has work is looked at again after so long. */
const busySecs = 15;
/** From the record of a connection to where it counts as one. */
const welcomeSecs = 60;
/** Read at one time where many must be moved out of the way. */
const mostAtOnce = 500;
/** The share of the interval by which turns are spread, so that those that were due together are not so for ever. */
const spread = 0.2;

/** What is to become of one that is due. */
export type Turn = 'check' | { due: number | null };

interface Due {
  status: 'pending' | 'approved' | 'rejected' | null;
  connected_at: number | null;
  snapshot_operation_id: string | null;
  /** When the last apply ended. */
  updated_at: number;
  open_operation: string | null;
  /** Of the latest record: what it found, and beside which apply. */
  latest_status: 'in_sync' | 'drifted' | 'failed' | 'cancelled' | null;
  latest_snapshot: string | null;
}

/** The latest record tells of drift from before the last apply, which may have put it right: nobody is to read that for an interval. */
const isOutdated = ({ snapshot_operation_id, latest_status, latest_snapshot }: Due): boolean =>
  latest_status !== null && latest_status !== 'in_sync' && latest_snapshot !== snapshot_operation_id;

/** @param connected now */
export function turnOf(row: Due, connected: boolean, now: number, rules: SweepRules): Turn {
  if (row.snapshot_operation_id === null) return { due: null };
  if (row.status !== 'approved') return { due: null };
  // It has missed its turn, and has it when it is back, which one that is just being welcomed was told already.
  if (!connected) return { due: Math.abs(now - (row.connected_at ?? 0)) < welcomeSecs ? now + busySecs : null };
  // An apply in the future was by a clock that was wrong.
  const settled = Math.min(row.updated_at, now) + rules.skipRecentlyApplied;
  if (settled > now && !isOutdated(row)) return { due: settled + Math.round(rules.interval * spread * rules.random()) };
  if (row.open_operation !== null) return { due: now + busySecs };
  return 'check';
}

/** When the next turn is after one now: the interval, give or take. */
export const nextTurn = (now: number, { interval, random }: SweepRules): number =>
  now + Math.max(1, Math.round(interval * (1 + spread * (random() - 0.5))));

/** How far a turn can be off: later ones were set by another interval, or another clock. */
const latestTurn = (now: number, { interval, skipRecentlyApplied }: SweepRules): number =>
  now + Math.ceil(interval * (1 + spread)) + skipRecentlyApplied + busySecs;

/** Turns that are too far off are now. */
export async function pullIn({ db, now }: Context, rules: SweepRules, fence: Fence): Promise<void> {
  const at = seconds(now());
  const pull = statement(pullInDriftDue, { now: at, latest: latestTurn(at, rules) });
  await db.write({ name: 'drift/pull in', statements: [...fence, pull] });
}

/** Whether anything is due. */
export async function anyDue({ db, now }: Context): Promise<boolean> {
  return (await db.get(dueForDrift, { now: seconds(now()), limit: 1 })) !== undefined;
}

/**
 * Queues the checks that are due, as many as may be under way, and moves everything else that is due to its time.
 * @returns the ids of the operations
 */
export async function queueDue(context: Context, rules: SweepRules, fence: Fence): Promise<string[]> {
  const { db, presence } = context;
  const now = seconds(context.now());
  // One whose agent has gone away with it holds up nobody.
  const underWay = (await db.all(scheduledChecks, {})).filter(({ node_id }) => presence.isConnected(node_id)).length;
  const queued: string[] = [];
  let limit = rules.maxConcurrent - underWay;
  while (queued.length + underWay < rules.maxConcurrent) {
    const rows = await db.all(dueForDrift, { now, limit: Math.min(limit, mostAtOnce) });
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
    if (moved.length + checks.length < rows.length || rows.length < Math.min(limit, mostAtOnce)) break;
    // Many are in the way, such as all that were away while nobody was here.
    limit = mostAtOnce;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return queued;
}

/** One that came back between the look and the write found nothing that it had missed. */
async function unparkReturned({ db, presence }: Context, nodeIds: readonly string[], now: number): Promise<void> {
  const back = nodeIds.filter((nodeId) => presence.isConnected(nodeId));
  const statements = back.map((node_id) => statement(missedDriftDue, { node_id, now }));
  if (statements.length > 0) await db.write({ name: 'drift/missed', statements });
}

/** @returns null when it is no longer due, or nobody's to check */
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
