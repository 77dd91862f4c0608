import { listAgents } from '@muster/protocol/http';
import { call } from './client.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

/** All agents, for every page that shows some. Events keep it fresh record by record: live-agents.ts. */
export const agentList = {
  queryKey: keys.agents,
  queryFn: ({ signal }: { signal: AbortSignal }) => call(listAgents, { signal }),
  // They are many, and events change them one at a time: comparing each with what was there costs more than it saves.
  structuralSharing: false,
};

/** Asks for them, if they are not known, before anything shows them. */
export const prefetchAgents = (): void => void queryClient.prefetchQuery(agentList);
