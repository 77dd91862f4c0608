/** Chooses the agent to displace when the list of pending agents is full. Pure functions. */

export interface PendingAgent {
  readonly node_id: string;
  /** The network from which the agent first connected. */
  readonly site: string;
  readonly connected: boolean;
  /** Unix seconds. */
  readonly last_seen_at: number;
}

/**
 * The pending agent that a new one displaces. The first choice is the least recently seen disconnected agent of the site with
 * the most agents. Otherwise, if that site would still have more agents than the new agent's site, the agent that connected
 * last is displaced. A single site can fill the list while no other needs a slot, but cannot keep others out.
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

/** Whether to prefer this disconnected agent over `found`: its site is larger, or it was seen less recently. */
const isBefore = (agent: PendingAgent, count: number, found: { agent: PendingAgent; count: number } | null): boolean =>
  found === null || count > found.count || (count === found.count && agent.last_seen_at < found.agent.last_seen_at);
