import { MusterError } from '@muster/protocol';
import { siteNetworkOf, siteOf } from '../../client-network.ts';
import { deletePendingAgent, pendingBeyond, pendingWithoutToken } from '../../store/queries/agents/agents.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited, type Happening } from '../audit/audit.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { givingWay } from './pending-place.ts';

/** Agents that wait for approval. Any client can create a key and send a hello, so the list and its events are bounded. */

/** Maximum number of individual events for new agents within a minute; further agents are reported together. */
const toldSingly = 10;
const tellEveryMs = 60_000;
/** Seconds after which a disconnected pending agent is deleted. When it returns, it is new. */
export const forgottenAfterSecs = 3_600;
/** Maximum number of records deleted in one round. */
const forgottenAtOnce = 200;
/** Maximum number of records considered for displacement. */
const maxConsidered = 10_000;

export interface PendingList {
  readonly capacity: number;
  /**
   * Statements that free a slot for a new agent; the same transaction has to insert its record.
   * @throws MusterError `pending_full` when no agent can be displaced
   */
  place(remoteIp: string): Promise<{ statements: Statement[]; displaced: string | null }>;
  /** Whether a new agent gets its own event. Otherwise `sweep` reports it together with others. */
  isToldSingly(happening: Happening<'agent.pending'>): boolean;
  /** Deletes disconnected agents, and reports the counted ones. @param upForMs milliseconds since the start */
  sweep(upForMs: number): Promise<void>;
  /** Reports the counted agents. */
  close(): Promise<void>;
}

interface Untold {
  count: number;
  /** Unix milliseconds. */
  since: number;
  newest: Happening<'agent.pending'>;
}

/** @param capacity maximum number of agents that wait for approval */
export function createPendingList(context: Context, capacity: number): PendingList {
  const { db } = context;
  let minute = Number.NEGATIVE_INFINITY;
  let told = 0;
  let untold: Untold | null = null;

  const startOfMinute = () => {
    const now = context.now();
    if (now - minute < tellEveryMs && now >= minute) return;
    minute = now;
    told = 0;
  };

  const tell = async () => {
    if (untold === null) return;
    const { count, since, newest } = untold;
    untold = null;
    const more = count === 1 ? '1 more agent waits' : `${count} more agents wait`;
    try {
      await db.write({
        name: 'agents/pending told',
        statements: [
          audited(context, {
            type: 'agent.pending',
            actor: systemActor,
            summary: `${more} for approval; the last was ${newest.target?.name} from ${newest.metadata?.ip}`,
            metadata: { ...newest.metadata, count, since: new Date(since).toISOString() },
          }),
        ],
      });
    } catch (error) {
      // More agents may have been counted during the write.
      const after = untold as Untold | null;
      untold = { count: count + (after?.count ?? 0), since, newest: after?.newest ?? newest };
      throw error;
    }
  };

  const forget = async () => {
    const seen_until = seconds(context.now()) - forgottenAfterSecs;
    const gone = (await db.all(pendingWithoutToken, { limit: forgottenAtOnce })).filter(
      ({ node_id, last_seen_at }) => last_seen_at <= seen_until && !context.presence.isConnected(node_id),
    );
    if (gone.length === 0) return;
    await db.write({
      name: 'agents/pending forgotten',
      statements: gone.map(({ node_id }) => statement(deletePendingAgent, { node_id, seen_until })),
    });
    for (const { node_id } of gone) context.bus.publish({ type: 'agent_removed', node_id });
  };

  return {
    capacity,

    async place(remoteIp) {
      const beyond = statement(pendingBeyond, { capacity: capacity - 1 }, { expect: 'no_row', else: 'pending_full' });
      if ((await db.get(pendingBeyond, { capacity: capacity - 1 })) === undefined)
        return { statements: [beyond], displaced: null };
      const waiting = (await db.all(pendingWithoutToken, { limit: maxConsidered })).map((row) => ({
        ...row,
        site: siteOf(row.initial_ip),
        connected: context.presence.isConnected(row.node_id),
      }));
      const site = siteOf(remoteIp);
      const wider = waiting.map((one) => ({ ...one, site: siteNetworkOf(one.site) }));
      const agent = givingWay(waiting, site) ?? givingWay(wider, siteNetworkOf(site));
      if (agent === null) throw new MusterError('pending_full');
      const { node_id, last_seen_at: seen_until } = agent;
      const removal = statement(
        deletePendingAgent,
        { node_id, seen_until },
        { expect: 'changed', else: 'agent_changed' },
      );
      return { statements: [removal, beyond], displaced: node_id };
    },

    isToldSingly(happening) {
      startOfMinute();
      if (++told <= toldSingly) return true;
      untold = { count: (untold?.count ?? 0) + 1, since: untold?.since ?? context.now(), newest: happening };
      return false;
    },

    async sweep(upForMs) {
      const now = context.now();
      if (untold !== null && (now - untold.since >= tellEveryMs || now < untold.since)) await tell();
      // After a start, agents need this time to reconnect before they count as disconnected.
      if (upForMs >= forgottenAfterSecs * 1000) await forget();
    },

    close: tell,
  };
}
