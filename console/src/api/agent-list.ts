import { listAgents } from '@muster/protocol/http';
import { call } from './client.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

/** All agents. Events update single records: live/live-agents.ts. */
export const agentList = {
  queryKey: keys.agents,
  queryFn: ({ signal }: { signal: AbortSignal }) => call(listAgents, { signal }),
  // A fleet is large and events change single records: comparing all of them costs more than it saves.
  structuralSharing: false,
};

/** Fetches all agents before a page needs them. */
export const prefetchAgents = (): void => void queryClient.prefetchQuery(agentList);
