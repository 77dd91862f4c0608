import type { Agent } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { agentsQuery } from '../../api/agents.ts';
import { byName } from './matching.ts';

/** Returns the agents with the given ids in natural order of their names, or undefined while they load. */
export function useMatchedAgents(ids: readonly string[]): readonly Agent[] | undefined {
  const { data: agents } = useQuery(agentsQuery);
  return useMemo(() => {
    const matches = new Set(ids);
    return agents?.filter(({ node_id }) => matches.has(node_id)).sort(byName);
  }, [agents, ids]);
}
