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

/** All agents, for every page that shows some. */
export const agentsQuery = queryOptions(agentList);

/** One of them, by id or name. */
export const agentQuery = (id: string) =>
  queryOptions({
    queryKey: keys.agent(id),
    queryFn: ({ signal }) => call(getAgent, { params: { node_id: id }, signal }),
    initialData: () =>
      queryClient.getQueryData<Agent[]>(keys.agents)?.find((agent) => agent.node_id === id || agent.name === id),
  });

const namesOf = (agents: Agent[]): ReadonlyMap<string, string> =>
  new Map(agents.map(({ node_id, name, initial_hostname }) => [node_id, name ?? initial_hostname]));

/** What people call the agents: by node id. Empty until they are known. */
export function useAgentNames(): ReadonlyMap<string, string> {
  const { data } = useQuery({ ...agentsQuery, select: namesOf });
  return data ?? none;
}
const none: ReadonlyMap<string, string> = new Map();

const tagsQuery = queryOptions({ queryKey: keys.tags, queryFn: ({ signal }) => call(listTags, { signal }) });

/** The newest sample of each agent, by id. No event tells of samples: whoever looks asks once a minute. */
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

/** What selectors can be made of in this fleet, for the field that they are written in. */
export function useSelectorVocabulary(): {
  readonly keys: () => readonly Counted[];
  readonly values: (key: string) => readonly Counted[];
} {
  const { data: tags } = useQuery(tagsQuery);
  const { data: agents } = useQuery(agentsQuery);
  return useMemo(() => {
    // Only while somebody types is it worked out, and once for an answer.
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

/** The texts of all agents, those of most agents first. */
function counted(agents: readonly Agent[], textsOf: (agent: Agent) => readonly (string | undefined)[]): Counted[] {
  const counts = new Map<string, number>();
  for (const agent of agents)
    for (const text of textsOf(agent)) if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([value, count]) => ({ value, count })).sort((a, b) => b.count - a.count);
}

async function kept(asked: Promise<Agent>): Promise<Agent> {
  const agent = await asked;
  keepAgents(new Map([[agent.node_id, agent]]));
  return agent;
}

export const approveAgent = (node_id: string, name?: string): Promise<Agent> =>
  kept(
    call(setAgentStatus, {
      params: { node_id },
      body: { status: 'approved', ...(name === undefined ? {} : { name }) },
    }),
  );

export const rejectAgent = (node_id: string): Promise<Agent> =>
  kept(call(setAgentStatus, { params: { node_id }, body: { status: 'rejected' } }));

export async function forgetAgent(node_id: string): Promise<void> {
  await call(removeAgent, { params: { node_id } });
  keepAgents(new Map([[node_id, null]]));
}

/** Shown at once, and as it was when it is refused. @param value null takes it away */
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
