import { MusterError } from '@muster/protocol';
import { markLastSeen, markLost, unseenAgents } from '../store/agents.ts';
import { type Statement, statement } from '../store/unit.ts';
import { audited } from './audit.ts';
import { type Context, seconds, systemActor } from './context.ts';

/**
 * Which approved agents are lost. What is recorded of when each was last seen decides, so that it does not matter how its
 * link ended, or whether anybody was there to notice: one query finds all whose record is older than the grace time. Of
 * those, the connected ones are recorded as seen, which so happens no more often than once in that time.
 */

/** Looked at in one round: the others have their turn in the next. */
const atOnce = 2_000;
/** Written in one unit. */
const inOneUnit = 500;

export interface LostWatch {
  round(): Promise<void>;
}

export interface LostWatchOptions {
  /** The grace time: so long nothing was heard of an agent that is lost. */
  lostAfterSecs: number;
  /** Milliseconds since this orchestrator could be reached: nobody is lost before they had the grace time to come back. */
  upFor: () => number;
}

export function createLostWatch(context: Context, { lostAfterSecs, upFor }: LostWatchOptions): LostWatch {
  const { db, presence } = context;
  return {
    async round() {
      const now = seconds(context.now());
      const unseen = await db.all(unseenAgents, { seen_before: now - lostAfterSecs, limit: atOnce });
      const seen: Statement[][] = [];
      const lost: Statement[][] = [];
      for (const row of unseen) {
        const heardAt = presence.lastHeardAt(row.node_id);
        if (heardAt !== null) seen.push([statement(markLastSeen, { node_id: row.node_id, at: heardAt })]);
        else if (upFor() >= lostAfterSecs * 1000) lost.push(lossOf(context, row, now));
      }
      for (const part of inParts(seen)) await db.write({ name: 'agents/seen', statements: part.flat() });
      for (const part of inParts(lost)) await writeLosses(context, part);
    },
  };
}

function* inParts<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += inOneUnit) yield items.slice(start, start + inOneUnit);
}

type UnseenRow = { node_id: string; name: string | null; initial_hostname: string; last_seen_at: number };

function lossOf(context: Context, row: UnseenRow, now: number): Statement[] {
  const { node_id, last_seen_at } = row;
  const label = row.name ?? row.initial_hostname;
  return [
    statement(markLost, { node_id, last_seen_at, now }, { expect: 'changed', else: 'agent_changed' }),
    audited(context, {
      type: 'agent.lost',
      severity: 'warning',
      actor: systemActor,
      target: { type: 'agent', id: node_id, name: label },
      summary: `agent ${label} is lost: last heard ${new Date(last_seen_at * 1000).toISOString()}`,
      metadata: { last_seen_at },
    }),
  ];
}

/** One that came back in this very moment undoes the unit it is in: then each stands for itself. */
async function writeLosses(context: Context, losses: readonly Statement[][]): Promise<void> {
  try {
    await context.db.write({ name: 'agents/lost', statements: losses.flat() });
  } catch (error) {
    if (!(error instanceof MusterError && error.code === 'agent_changed')) throw error;
    if (losses.length > 1) for (const loss of losses) await writeLosses(context, [loss]);
  }
}
