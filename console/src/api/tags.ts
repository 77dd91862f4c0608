import { type Agent, deleteTag, listTags, putTag } from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { agentsQuery } from './agents.ts';
import { call } from './client.ts';
import { keepAgents } from './live/live-agents.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

const tagsQuery = queryOptions({ queryKey: keys.tags, queryFn: ({ signal }) => call(listTags, { signal }) });

interface Counted {
  readonly value: string;
  readonly count: number | null;
}

/** Returns the fleet's tags and attributes for completing selectors. */
export function useSelectorVocabulary(): {
  readonly keys: () => readonly Counted[];
  readonly values: (key: string) => readonly Counted[];
} {
  const { data: tags } = useQuery(tagsQuery);
  const { data: agents } = useQuery(agentsQuery);
  return useMemo(() => {
    // Computed on first use, because most visits need no selector.
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

/** Counts how many agents have each text. Returns the most frequent text first. */
function counted(agents: readonly Agent[], textsOf: (agent: Agent) => readonly (string | undefined)[]): Counted[] {
  const counts = new Map<string, number>();
  for (const agent of agents)
    for (const text of textsOf(agent)) if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
  return [...counts].map(([value, count]) => ({ value, count })).sort((a, b) => b.count - a.count);
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
