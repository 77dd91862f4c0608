/** Chooses the agent to displace when the list of pending agents is full. Pure functions. */

export interface PendingAgent {
  readonly node_id: string;
  /** The network that it first came from. */
  readonly site: string;
  readonly connected: boolean;
  /** Unix seconds. */
  readonly last_seen_at: number;
}

/**
 * The pending agent that a new one displaces: from the site with the most agents, a disconnected one, longest unseen
 * first; otherwise, where that site would still have more agents than the new one's, the agent that connected last. A
 * single site can fill the list while no other needs a place, but cannot keep others out.
 * @returns null when no agent can be displaced
 */
export function givingWay(waiting: readonly PendingAgent[], site: string): PendingAgent | null {
  const bySite = Map.groupBy(waiting, (agent) => agent.site);
  const own = bySite.get(site)?.length ?? 0;
  let absent: { agent: PendingAgent; count: number } | null = null;
  let present: { agent: PendingAgent; count: number } | null = null;
  for (const agents of bySite.values()) {
    const count = agents.length;
    const inOrder = agents.toSorted((a, b) => a.last_seen_at - b.last_seen_at || (a.node_id < b.node_id ? -1 : 1));
    const longestGone = inOrder.find(({ connected }) => !connected);
    if (longestGone !== undefined && count > own && isBefore(longestGone, count, absent))
      absent = { agent: longestGone, count };
    const newest = inOrder.findLast(({ connected }) => connected);
    if (newest !== undefined && count > own + 1 && count > (present?.count ?? 0)) present = { agent: newest, count };
  }
  return (absent ?? present)?.agent ?? null;
}

/** Whether to prefer this absent agent over the one found so far: from a larger site, or unseen for longer. */
const isBefore = (agent: PendingAgent, count: number, found: { agent: PendingAgent; count: number } | null): boolean =>
  found === null || count > found.count || (count === found.count && agent.last_seen_at < found.agent.last_seen_at);
