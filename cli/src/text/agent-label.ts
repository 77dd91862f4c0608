import type { Client } from '@muster/protocol/client';
import { type Agent, getAgent, listAgents } from '@muster/protocol/http';

/** The name of an agent, or the beginning of its id while it has none. */
export const agentLabel = (agent: Pick<Agent, 'name' | 'node_id'>): string => agent.name ?? agent.node_id.slice(0, 12);

/** Names by node id: one request each for a few agents, one for many. Removed agents are missing. */
export async function agentNames(call: Client, ids: ReadonlySet<string>): Promise<Map<string, string>> {
  const agents =
    ids.size > 20
      ? await call(listAgents, {})
      : await Promise.all([...ids].map((node_id) => call(getAgent, { params: { node_id } }).catch(() => null)));
  return new Map(agents.flatMap((agent) => (agent === null ? [] : [[agent.node_id, agentLabel(agent)] as const])));
}
