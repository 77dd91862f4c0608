import { MusterError } from '@muster/protocol';
import { siteNetworkOf, siteOf } from '../../client-network.ts';
import { deletePendingAgent, pendingBeyond, pendingWithoutToken } from '../../store/queries/agents/agents.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited, type Happening } from '../audit/audit.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';
import { agentToDisplace } from './pending-slot.ts';

/**
 * The list of agents that wait for approval. Any client can create a key and send a hello, so the list and its events are
 * bounded.
 */

/** Maximum number of new agents per minute with their own events. One event counts all further agents. */
const maxSingly = 10;
const reportEveryMs = 60_000;
/** Seconds after which a disconnected pending agent is deleted. If the agent returns, it counts as new. */
export const deletedAfterSecs = 3_600;
/** Maximum number of records deleted in one round. */
const deletedAtOnce = 200;
/** Maximum number of records read to choose the agent to displace. */
const maxConsidered = 10_000;

export interface PendingList {
  readonly capacity: number;
  /**
   * Returns statements that make room for a new agent. The same transaction must insert the agent's record.
   * @throws MusterError `pending_full` if no agent can be displaced
   */
  allocateSlot(remoteIp: string): Promise<{ statements: Statement[]; displaced: string | null }>;
  /**
   * Reports whether a new agent gets its own event. Otherwise, counts the agent in the next event that `report`
   * records.
   */
  isReportedSingly(happening: Happening<'agent.pending'>): boolean;
  /** Records the event for the counted agents, at most once a minute. */
  report(): Promise<void>;
  /**
   * Deletes agents that have been disconnected for an hour.
   * @param fleet the context for fleet maintenance
   * @param upForMs milliseconds for which agents have been able to reach this orchestrator, or since the end of another
   *   process that agents may have been connected to. Agents need time to reconnect before they count as disconnected
   */
  forget(fleet: Context, upForMs: number): Promise<void>;
  close(): Promise<void>;
}

interface Unreported {
  count: number;
  /** Unix milliseconds. */
  since: number;
  newest: Happening<'agent.pending'>;
}

/** @param capacity maximum number of agents that wait for approval */
export function createPendingList(context: Context, capacity: number): PendingList {
  const { db } = context;
  let minute = Number.NEGATIVE_INFINITY;
  let reported = 0;
  let unreported: Unreported | null = null;

  const startOfMinute = () => {
    const now = context.now();
    if (now - minute < reportEveryMs && now >= minute) return;
    minute = now;
    reported = 0;
  };

  const recordUnreported = async () => {
    if (unreported === null) return;
    const { count, since, newest } = unreported;
    unreported = null;
    const more = count === 1 ? '1 more agent waits' : `${count} more agents wait`;
    try {
      await db.write({
        name: 'agents/pending told',
        statements: [
          audited(context, {
            type: 'agent.pending',
            actor: systemActor,
            summary: `${more} for approval; the newest is ${newest.target?.name} from ${newest.metadata?.ip}`,
            metadata: { ...newest.metadata, count, since: new Date(since).toISOString() },
          }),
        ],
      });
    } catch (error) {
      // More agents may have been counted during the write.
      const after = unreported as Unreported | null;
      unreported = { count: count + (after?.count ?? 0), since, newest: after?.newest ?? newest };
      throw error;
    }
  };

  const forget = async ({ db, presence, bus }: Context) => {
    const seen_until = seconds(context.now()) - deletedAfterSecs;
    const expired = (await db.all(pendingWithoutToken, { limit: deletedAtOnce })).filter(
      ({ node_id, last_seen_at }) => last_seen_at <= seen_until && !presence.isConnected(node_id),
    );
    if (expired.length === 0) return;
    await db.write({
      name: 'agents/pending forgotten',
      statements: expired.map(({ node_id }) => statement(deletePendingAgent, { node_id, seen_until })),
    });
    for (const { node_id } of expired) bus.publish({ type: 'agent_removed', node_id });
  };

  return {
    capacity,

    async allocateSlot(remoteIp) {
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
      const agent = agentToDisplace(waiting, site) ?? agentToDisplace(wider, siteNetworkOf(site));
      if (agent === null) throw new MusterError('pending_full');
      const { node_id, last_seen_at: seen_until } = agent;
      const removal = statement(
        deletePendingAgent,
        { node_id, seen_until },
        { expect: 'changed', else: 'agent_changed' },
      );
      return { statements: [removal, beyond], displaced: node_id };
    },

    isReportedSingly(happening) {
      startOfMinute();
      if (++reported <= maxSingly) return true;
      unreported = {
        count: (unreported?.count ?? 0) + 1,
        since: unreported?.since ?? context.now(),
        newest: happening,
      };
      return false;
    },

    async report() {
      const now = context.now();
      if (unreported !== null && (now - unreported.since >= reportEveryMs || now < unreported.since))
        await recordUnreported();
    },

    async forget(fleet, upForMs) {
      if (upForMs >= deletedAfterSecs * 1000) await forget(fleet);
    },

    close: recordUnreported,
  };
}
