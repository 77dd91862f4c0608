/** Who gives way when the list of agents that wait for approval is full. Decided on values alone. */

export interface PendingAgent {
  readonly node_id: string;
  /** Of the network that it first came from. */
  readonly site: string;
  readonly connected: boolean;
  /** Unix seconds. */
  readonly last_seen_at: number;
}

/**
 * The agent that gives its place to a new one: of the site with the most agents on the list, one that is not connected,
 * unseen for longest; or else, where the site would still have more than the new agent's, the one that connected last.
 * So one site can fill the list as long as no other needs a place, and nobody can keep others out.
 * @returns null when nobody gives way
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

/** Whether an absent agent gives way before the one found so far: of the larger site, or unseen for longer. */
const isBefore = (agent: PendingAgent, count: number, found: { agent: PendingAgent; count: number } | null): boolean =>
  found === null || count > found.count || (count === found.count && agent.last_seen_at < found.agent.last_seen_at);
