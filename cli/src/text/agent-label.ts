import type { Client } from '@muster/protocol/client';
import { type Agent, getAgent, listAgents } from '@muster/protocol/http';

/** Returns an agent's name, or the first characters of its id if it has no name. */
export const agentLabel = (agent: Pick<Agent, 'name' | 'node_id'>): string => agent.name ?? agent.node_id.slice(0, 12);

/** Returns each tag as it is typed: `role=web`, or only the key of a tag without a value. */
export const tagTexts = (tags: Readonly<Record<string, string>>): string[] =>
  Object.entries(tags).map(([key, value]) => (value === '' ? key : `${key}=${value}`));

/** Returns names by node id. Requests a few agents one by one, and many with one list. Omits removed agents. */
export async function agentNames(call: Client, ids: ReadonlySet<string>): Promise<Map<string, string>> {
  const agents =
    ids.size > 20
      ? await call(listAgents, {})
      : await Promise.all([...ids].map((node_id) => call(getAgent, { params: { node_id } }).catch(() => null)));
  return new Map(agents.flatMap((agent) => (agent === null ? [] : [[agent.node_id, agentLabel(agent)] as const])));
}
