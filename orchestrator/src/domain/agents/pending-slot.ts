export interface PendingAgent {
  readonly node_id: string;
  /** The network from which the agent first connected. */
  readonly site: string;
  readonly connected: boolean;
  /** Unix seconds. */
  readonly last_seen_at: number;
}

/**
 * Returns the pending agent that a new agent displaces. Considers networks with more agents than the new agent's
 * network, the largest first. Prefers the least recently seen disconnected agent. Otherwise, chooses the most recently
 * seen connected agent, if its network would still have more agents. A single network can fill the list while no other
 * network needs a slot, but it cannot exclude other networks.
 * @returns null if no agent can be displaced
 */
export function agentToDisplace(waiting: readonly PendingAgent[], site: string): PendingAgent | null {
  const bySite = Map.groupBy(waiting, (agent) => agent.site);
  const own = bySite.get(site)?.length ?? 0;
  let absent: { agent: PendingAgent; count: number } | null = null;
  let present: { agent: PendingAgent; count: number } | null = null;
  for (const agents of bySite.values()) {
    const count = agents.length;
    const inOrder = agents.toSorted((a, b) => a.last_seen_at - b.last_seen_at || (a.node_id < b.node_id ? -1 : 1));
    const longestAbsent = inOrder.find(({ connected }) => !connected);
    if (longestAbsent !== undefined && count > own && isBefore(longestAbsent, count, absent))
      absent = { agent: longestAbsent, count };
    const newest = inOrder.findLast(({ connected }) => connected);
    if (newest !== undefined && count > own + 1 && count > (present?.count ?? 0)) present = { agent: newest, count };
  }
  return (absent ?? present)?.agent ?? null;
}

/**
 * Reports whether to displace this disconnected agent rather than `found`: its network has more agents, or it was seen
 * less recently.
 */
const isBefore = (agent: PendingAgent, count: number, found: { agent: PendingAgent; count: number } | null): boolean =>
  found === null || count > found.count || (count === found.count && agent.last_seen_at < found.agent.last_seen_at);
