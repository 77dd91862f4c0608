import {
  type Agent,
  deleteTag,
  getAgent,
  latestSamples,
  listTags,
  putTag,
  removeAgent,
  setAgentStatus,
} from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { agentList } from './agent-list.ts';
import { call } from './client.ts';
import { keepAgents } from './live/live-agents.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

export const agentsQuery = queryOptions(agentList);

/** @param id node id or name */
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

const tagsQuery = queryOptions({ queryKey: keys.tags, queryFn: ({ signal }) => call(listTags, { signal }) });

/** The newest sample of each agent, by node id. Polled every minute, because samples cause no events. */
export const latestSamplesQuery = queryOptions({
  queryKey: keys.latestMetrics,
  queryFn: ({ signal }) => call(latestSamples, { signal }),
  structuralSharing: false,
  refetchInterval: 60_000,
});

interface Counted {
  readonly value: string;
  readonly count: number | null;
}

/** Returns the tags and attributes of the fleet for completing selectors. */
export function useSelectorVocabulary(): {
  readonly keys: () => readonly Counted[];
  readonly values: (key: string) => readonly Counted[];
} {
  const { data: tags } = useQuery(tagsQuery);
  const { data: agents } = useQuery(agentsQuery);
  return useMemo(() => {
    // Computed on first use: most visits never type a selector.
    let attributes: readonly Counted[] | null = null;
    const keys = (): readonly Counted[] => {
      attributes ??= counted(agents ?? [], ({ attributes }) => Object.keys(attributes)).map(({ value, count }) => ({
        value: `attr.${value}`,
        count,
      }));
      const ofTags = Object.entries(tags?.counts ?? {}).map(([value, values]) => ({
        value,
        count: Object.values(values).reduce((sum, count) => sum + count, 0),
      }));
      return [...ofTags, ...attributes];
    };
    const values = (key: string): readonly Counted[] => {
      if (key.startsWith('attr.')) {
        const name = key.slice('attr.'.length);
        return counted(agents ?? [], ({ attributes }) => (Object.hasOwn(attributes, name) ? [attributes[name]] : []));
      }
      const counts = Object.hasOwn(tags?.counts ?? {}, key) ? tags?.counts[key] : {};
      return Object.entries(counts ?? {}).map(([value, count]) => ({ value, count }));
    };
    return { keys, values };
  }, [tags, agents]);
}

/** Counts how many agents have each text, most frequent first. */
function counted(agents: readonly Agent[], textsOf: (agent: Agent) => readonly (string | undefined)[]): Counted[] {
  const counts = new Map<string, number>();
  for (const agent of agents)
    for (const text of textsOf(agent)) if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([value, count]) => ({ value, count })).sort((a, b) => b.count - a.count);
}

/** Stores the returned record in the cache. */
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

/**
 * Updates the cache immediately and restores the previous value if the request fails.
 * @param value null removes the tag
 */
export async function setTag(agent: Agent, key: string, value: string | null): Promise<void> {
  const { [key]: _, ...others } = agent.tags;
  keepAgents(new Map([[agent.node_id, { ...agent, tags: value === null ? others : { ...others, [key]: value } }]]));
  const params = { node_id: agent.node_id, key };
  try {
    if (value === null) await call(deleteTag, { params });
    else await call(putTag, { params, body: { value } });
  } catch (error) {
    keepAgents(new Map([[agent.node_id, agent]]));
    throw error;
  }
  void queryClient.invalidateQueries({ queryKey: keys.tags });
}
