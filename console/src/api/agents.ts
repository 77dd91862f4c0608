import {
  type Agent,
  type AgentSort,
  getAgent,
  latestSamples,
  matchSelector,
  removeAgent,
  setAgentStatus,
} from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { call } from './client.ts';
import { agentList, firstAgents } from './live/agent-list.ts';
import { keepAgents } from './live/live-agents.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

export const agentsQuery = queryOptions(agentList);

/**
 * Returns all agents, or only the first ones while the rest load.
 * @param sort order in which to request the first agents; null to wait for all
 */
export function useAgentList(sort: AgentSort | null) {
  const { data, isPending, error, refetch } = useQuery(agentsQuery);
  const first = useQuery({ ...firstAgents(sort ?? 'name'), enabled: isPending && sort !== null });
  return {
    /** Undefined until at least one agent is loaded. */
    agents: data ?? (isPending && sort !== null ? first.data : undefined),
    /** Whether `agents` contains every agent. */
    isComplete: data !== undefined,
    error: data === undefined ? error : null,
    refetch,
  };
}

/** @param id the agent's node id or name */
export const agentQuery = (id: string) =>
  queryOptions({
    queryKey: keys.agent(id),
    queryFn: ({ signal }) => call(getAgent, { params: { node_id: id }, signal }),
    initialData: () =>
      queryClient.getQueryData<Agent[]>(keys.agents)?.find((agent) => agent.node_id === id || agent.name === id),
  });

const namesOf = (agents: Agent[]): ReadonlyMap<string, string> =>
  new Map(agents.map(({ node_id, name, initial_hostname }) => [node_id, name ?? initial_hostname]));

/** Returns the names of the agents by node id, or an empty map while loading. */
export function useAgentNames(): ReadonlyMap<string, string> {
  const { data } = useQuery({ ...agentsQuery, select: namesOf });
  return data ?? none;
}
const none: ReadonlyMap<string, string> = new Map();

/** Returns an agent's name; null if the agent was removed, and undefined while loading. */
export function useAgentName(node_id: string): string | null | undefined {
  const { data } = useQuery({ ...agentsQuery, select: namesOf });
  return data === undefined ? undefined : (data.get(node_id) ?? null);
}

/** The newest sample of each agent, by node id. Polled every minute, because samples cause no events. */
export const latestSamplesQuery = queryOptions({
  queryKey: keys.latestMetrics,
  queryFn: ({ signal }) => call(latestSamples, { signal }),
  structuralSharing: false,
  refetchInterval: 60_000,
});

async function cached(answer: Promise<Agent>): Promise<Agent> {
  const agent = await answer;
  keepAgents(new Map([[agent.node_id, agent]]));
  return agent;
}

export const approveAgent = (node_id: string, name?: string): Promise<Agent> =>
  cached(
    call(setAgentStatus, {
      params: { node_id },
      body: { status: 'approved', ...(name === undefined ? {} : { name }) },
    }),
  );

export const rejectAgent = (node_id: string): Promise<Agent> =>
  cached(call(setAgentStatus, { params: { node_id }, body: { status: 'rejected' } }));

export async function forgetAgent(node_id: string): Promise<void> {
  await call(removeAgent, { params: { node_id } });
  keepAgents(new Map([[node_id, null]]));
}

/** The node ids of the approved agents without a successful apply. Operations mark it as stale. */
export const neverAppliedQuery = queryOptions({
  queryKey: [...keys.reconcile, 'never-applied'],
  queryFn: async ({ signal }) =>
    (await call(matchSelector, { body: { selector: '', never_applied: true }, signal })).matches,
});

/** Returns the query for the agents that a selector matches. */
export const matchesQuery = (selector: string) =>
  queryOptions({
    queryKey: keys.matches(selector),
    queryFn: async ({ signal }) => (await call(matchSelector, { body: { selector }, signal })).matches,
    // Each selector that the operator types has its own key, so unused results are removed from the cache soon.
    gcTime: 60_000,
    retry: false,
  });
