import { MusterError } from '@muster/protocol';
import { markLastSeen, markLost, unseenAgents, unseenAmong } from '../../store/queries/agents/agents.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';

/**
 * Detects lost agents by their recorded last-seen times, regardless of how their links closed, and even if the
 * orchestrator was down. A scan reads the records once, from the least recently seen agent to the start of the grace
 * period. Agents that disconnect or change behind the scan's position are checked again. The scan restarts
 * periodically, to refresh the last-seen times of connected agents and to recover lost hints.
 *
 * Each process refreshes the last-seen times of its agents. Only the process that maintains the fleet marks agents as
 * lost.
 */

/** Seconds between scans. After a crash, the recorded last-seen time of a connected agent may be up to this old. */
const scanSecs = 900;
/** Maximum number of records checked in one round. */
const maxAtOnce = 2_000;
/** Maximum number of agents marked as lost in one transaction. */
const perTransaction = 500;

export interface LostWatch {
  /** @param fleet the context for fleet maintenance; null if another process does it */
  round(fleet: Context | null): Promise<void>;
  stop(): void;
}

export interface LostWatchOptions {
  /** Grace period: seconds without a message after which an agent counts as lost. */
  lostAfterSecs: number;
  /**
   * Returns the milliseconds since agents could first reach this orchestrator, or since another process that they may
   * have been connected to ended. An agent counts as lost only after it has had the grace period to reconnect.
   */
  upFor: () => number;
  /** Overrides the maximum number of records per round, for tests. */
  atOnce?: number;
}

export function createLostWatch(
  context: Context,
  { lostAfterSecs, upFor, atOnce = maxAtOnce }: LostWatchOptions,
): LostWatch {
  const { db, bus, presence } = context;
  const recordEvery = Math.max(scanSecs, lostAfterSecs);
  let startedAt = Number.NEGATIVE_INFINITY;
  let reached = { seen_since: 0, after_id: '' };
  /** Whether the scan marks agents as lost. */
  let marks = false;
  /** `upFor` in the last round. It decreases when another process is found to have ended. */
  let wasUpFor = 0;
  /** Agents that changed behind the scan's position. */
  let behind = new Set<string>();
  const graceBegan = () => seconds(context.now()) - lostAfterSecs;
  const unsubscribe = bus.subscribe((hint) => {
    if (hint.type === 'agent_changed' || (hint.type === 'agent_departed' && hint.heard_at <= graceBegan()))
      behind.add(hint.node_id);
  });

  const look = async (rows: readonly UnseenRow[], now: number, fleet: Context | null) => {
    const seen: Statement[][] = [];
    const lost: Statement[][] = [];
    for (const row of rows) {
      const lastContactAt = presence.lastContactAt(row.node_id);
      if (lastContactAt === null) lost.push(lossOf(context, row, now));
      // If the agent is connected to another replica, that replica records the time.
      else if (row.last_seen_at <= now - recordEvery && presence.replicaOf(row.node_id) === null)
        seen.push([statement(markLastSeen, { node_id: row.node_id, at: lastContactAt })]);
    }
    for (const part of inParts(seen)) await db.write({ name: 'agents/seen', statements: part.flat() });
    if (fleet !== null) for (const part of inParts(lost)) await writeLosses(fleet, part);
  };

  return {
    async round(fleet) {
      if (fleet === null) marks = false;
      const isUpFor = upFor();
      // The scan may have passed agents of the process that has ended, because they still counted as connected.
      if (isUpFor < wasUpFor) startedAt = Number.NEGATIVE_INFINITY;
      wasUpFor = isUpFor;
      if (isUpFor < lostAfterSecs * 1000) return;
      const now = seconds(context.now());
      const seen_before = graceBegan();
      const again = behind;
      behind = new Set();
      try {
        for (const ids of inParts([...again]))
          await look(await db.all(unseenAmong, { ids: [...ids], seen_before }), now, fleet);
      } catch (error) {
        for (const id of again) behind.add(id);
        throw error;
      }
      const takesOver = fleet !== null && !marks;
      marks = fleet !== null;
      // Detects that the clock was set back.
      if (takesOver || now - startedAt >= scanSecs || now < startedAt) {
        startedAt = now;
        reached = { seen_since: 0, after_id: '' };
      }
      const rows = await db.all(unseenAgents, { ...reached, seen_before, limit: atOnce });
      await look(rows, now, fleet);
      const last = rows.at(-1);
      if (last) reached = { seen_since: last.last_seen_at, after_id: last.node_id };
    },

    stop: unsubscribe,
  };
}

function* inParts<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += perTransaction) yield items.slice(start, start + perTransaction);
}

type UnseenRow = { node_id: string; name: string | null; initial_hostname: string; last_seen_at: number };

function lossOf(context: Context, row: UnseenRow, now: number): Statement[] {
  const { node_id, last_seen_at } = row;
  const label = row.name ?? row.initial_hostname;
  return [
    statement(markLost, { node_id, last_seen_at, now }, { expect: 'changed', else: 'agent_changed' }),
    audited(context, {
      type: 'agent.lost',
      actor: systemActor,
      target: { type: 'agent', id: node_id, name: label },
      summary: `agent ${label} is offline; last seen at ${new Date(last_seen_at * 1000).toISOString()}`,
      metadata: { last_seen_at },
    }),
  ];
}

/**
 * Marks all of them as lost in one transaction, or each in its own transaction if an agent reconnected concurrently.
 */
async function writeLosses(context: Context, losses: readonly Statement[][]): Promise<void> {
  try {
    await context.db.write({ name: 'agents/lost', statements: losses.flat() });
  } catch (error) {
    if (!(error instanceof MusterError && error.code === 'agent_changed')) throw error;
    if (losses.length > 1) for (const loss of losses) await writeLosses(context, [loss]);
  }
}
