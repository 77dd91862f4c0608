import { type Agent, getAgent, listAgents, setAgentStatus } from '@muster/protocol/http';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { call } from './client.ts';
import { keys } from './keys.ts';
import { queryClient } from './query-client.ts';

/** All agents, for every page that shows some. */
export const agentsQuery = queryOptions({
  queryKey: keys.agents,
  queryFn: ({ signal }) => call(listAgents, { signal }),
  // They are many, and events change them one at a time: comparing each with what was there costs more than it saves.
  structuralSharing: false,
});

/** One of them, by id or name. */
export const agentQuery = (id: string) =>
  queryOptions({
    queryKey: keys.agent(id),
    queryFn: ({ signal }) => call(getAgent, { params: { node_id: id }, signal }),
    initialData: () => queryClient.getQueryData<Agent[]>(keys.agents)?.find((agent) => agent.node_id === id),
  });

const namesOf = (agents: Agent[]): ReadonlyMap<string, string> =>
  new Map(agents.map(({ node_id, name, initial_hostname }) => [node_id, name ?? initial_hostname]));

/** What people call the agents: by node id. Empty until they are known. */
export function useAgentNames(): ReadonlyMap<string, string> {
  const { data } = useQuery({ ...agentsQuery, select: namesOf });
  return data ?? none;
}
const none: ReadonlyMap<string, string> = new Map();

export const approveAgent = (node_id: string, name?: string) =>
  call(setAgentStatus, { params: { node_id }, body: { status: 'approved', ...(name === undefined ? {} : { name }) } });

export const rejectAgent = (node_id: string) =>
  call(setAgentStatus, { params: { node_id }, body: { status: 'rejected' } });
