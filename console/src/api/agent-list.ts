import { type AgentSort, listAgents } from '@muster/protocol/http';
import { call, callBeforeEvents } from './client.ts';
import { provisional } from './live/query-invalidation.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

// Structural sharing compares all agents on every change, which costs more than rendering them again.
const structuralSharing = false;

/** The query for all agents. Events update individual records (live/live-agents.ts). */
export const agentList = {
  queryKey: keys.agents,
  queryFn: ({ signal }: { signal: AbortSignal }) => call(listAgents, { signal }),
  structuralSharing,
};

/** Maximum number of agents on the first page of the list: more than a screen shows. */
const firstPageSize = 100;

/** The query for the first agents in an order, to show while the list of all agents loads. */
export const firstAgents = (sort: AgentSort) => ({
  queryKey: keys.firstAgents(sort),
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    callBeforeEvents(listAgents, { query: { sort, limit: String(firstPageSize) }, signal }),
  structuralSharing,
  meta: provisional,
});

/** Orders of the agents page in which the orchestrator can sort, by the page's URL parameter `sort`. */
const sorts: Readonly<Record<string, AgentSort>> = { agent: 'name', '-agent': '-name' };

/** Order of the agents page if its URL names none. */
export const defaultAgentOrder = 'agent';

/**
 * Returns the order in which to request the first agents; null if the orchestrator cannot sort in that order.
 * @param order URL parameter `sort` of the agents page
 */
export const firstAgentsSort = (order: string | null): AgentSort | null => sorts[order ?? defaultAgentOrder] ?? null;

/** Requests the data of the agents page: the first agents, then all. */
export function prefetchAgents(): void {
  const sort = firstAgentsSort(new URLSearchParams(window.location.search).get('sort'));
  if (sort !== null) void queryClient.prefetchQuery(firstAgents(sort));
  void queryClient.prefetchQuery(agentList);
}
