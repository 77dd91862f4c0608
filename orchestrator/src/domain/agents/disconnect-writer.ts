import { releaseLink } from '../../store/queries/agents/agent-links.ts';
import { markLastSeen } from '../../store/queries/agents/agents.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';

/** Maximum number of agents written in one transaction. */
const atOnce = 500;

export interface Departures {
  /**
   * Records that an agent has disconnected. Resolves once it is committed.
   * @param lastContactAt Unix seconds
   */
  departed(nodeId: string, lastContactAt: number): Promise<void>;
  /**
   * Resolves once no write for the agent is pending, so that recording the end of its previous link cannot overwrite
   * the claim of its next link. Never rejects: if a write fails, the next link's claim replaces the old claim.
   */
  settled(nodeId: string): Promise<void>;
}

/**
 * Records when a disconnected agent was last heard from and, if this process is a replica, that it no longer holds the
 * agent's link. Thousands of agents may disconnect at the same time, so agents that disconnect during a write share the
 * next transaction.
 */
export function createDepartures({
  db,
  bus,
  incarnation,
  isReplica,
  presence,
}: Pick<Context, 'db' | 'bus' | 'incarnation' | 'isReplica' | 'presence'>): Departures {
  let waiting = new Map<string, number>();
  let next: Promise<void> | null = null;
  let writing: ReadonlyMap<string, number> = new Map();
  let current: Promise<unknown> = Promise.resolve();

  const write = async (departed: ReadonlyMap<string, number>) => {
    writing = departed;
    const statements = [...departed].flatMap(([node_id, at]): Statement[] => [
      statement(markLastSeen, { node_id, at }),
      ...(isReplica ? [statement(releaseLink, { node_id, incarnation })] : []),
    ]);
    for (let start = 0; start < statements.length; start += atOnce)
      await db.write({ name: 'agents/gone', statements: statements.slice(start, start + atOnce) });
    // The link may have ended because the agent is now connected to another replica.
    for (const [node_id, heard_at] of departed)
      if (!isReplica || !presence.isConnected(node_id)) bus.publish({ type: 'agent_departed', node_id, heard_at });
  };

  return {
    departed(nodeId, lastContactAt) {
      waiting.set(nodeId, Math.max(lastContactAt, waiting.get(nodeId) ?? 0));
      next ??= current
        .catch(() => {})
        .then(() => {
          const departed = waiting;
          waiting = new Map();
          next = null;
          const written = write(departed);
          current = written;
          return written;
        });
      return next;
    },
    async settled(nodeId) {
      while (waiting.has(nodeId)) await next?.catch(() => {});
      if (writing.has(nodeId)) await current.catch(() => {});
    },
  };
}
