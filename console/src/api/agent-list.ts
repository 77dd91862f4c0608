import { listAgents } from '@muster/protocol/http';
import { call } from './client.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

/** The query for all agents. Events update individual records (live/live-agents.ts). */
export const agentList = {
  queryKey: keys.agents,
  queryFn: ({ signal }: { signal: AbortSignal }) => call(listAgents, { signal }),
  // Structural sharing compares all agents on every change, which costs more than rendering them again.
  structuralSharing: false,
};

export const prefetchAgents = (): void => void queryClient.prefetchQuery(agentList);
