import { ApiError } from '@muster/protocol/client';
import { type Agent, getAgent } from '@muster/protocol/http';
import { call, session } from '../client.ts';
import { markStale, queryClient } from '../query-client.ts';
import { keys } from '../query-keys.ts';
import { createDirtyAgents, patched } from './dirty-agents.ts';
import { onLiveMessage } from './events.ts';
import type { LiveMessage } from './outdated-keys.ts';

/** Updates cached agents after events: fetches individual records if few agents changed; otherwise the whole list. */

/** The query keys under which an agent may be cached: its id and its name. */
const keysOf = (agent: Agent) => [keys.agent(agent.node_id), ...(agent.name === null ? [] : [keys.agent(agent.name)])];

/**
 * Replaces cached agent records in all queries.
 * @param fresh by node id; null if the agent was removed
 */
export function keepAgents(fresh: ReadonlyMap<string, Agent | null>): void {
  // The key matches the first page of the list as well.
  queryClient.setQueriesData<Agent[]>({ queryKey: keys.agents }, (list) => list && patched(list, fresh));
  for (const [id, agent] of fresh) {
    if (agent === null) void queryClient.invalidateQueries({ queryKey: keys.agent(id) });
    else
      for (const key of keysOf(agent))
        queryClient.setQueryData<Agent>(key, (known) => (known === undefined ? undefined : agent));
  }
}

const isCached = (id: string): boolean =>
  queryClient.getQueryData(keys.agents) !== undefined ||
  queryClient
    .getQueryCache()
    .findAll({ queryKey: ['agent'] })
    .some(({ state }) => (state.data as Agent | undefined)?.node_id === id);

/** Reports whether a request is pending. Its response may be older than that of a new fetch, and could overwrite it. */
const isFetching = (): boolean =>
  queryClient.isFetching({ queryKey: keys.agents }) > 0 || queryClient.isFetching({ queryKey: ['agent'] }) > 0;

async function fetchSome(ids: readonly string[]): Promise<void> {
  if (isFetching()) {
    for (const id of ids) dirty.add(id);
    return;
  }
  const answers = await Promise.all(
    ids.filter(isCached).map(async (id): Promise<[string, Agent | null] | null> => {
      try {
        return [id, await call(getAgent, { params: { node_id: id } })];
      } catch (error) {
        // After any other error, the `gap` message of the next connection marks the whole cache as stale.
        return error instanceof ApiError && error.problem.status === 404 ? [id, null] : null;
      }
    }),
  );
  keepAgents(new Map(answers.filter((answer) => answer !== null)));
}

const dirty = createDirtyAgents({
  fetchSome: (ids) => void fetchSome(ids),
  fetchAll: () => {
    markStale(keys.agents);
    markStale(['agent']);
  },
  now: Date.now,
  after: (ms, act) => {
    const timer = window.setTimeout(act, ms);
    return () => window.clearTimeout(timer);
  },
});

/** Marks the agents in a message as changed. */
export function markAgents(message: LiveMessage): void {
  if (message.kind === 'agent') dirty.add(message.node_id);
  else if (message.kind === 'agents') {
    if (message.agents === null) dirty.addAll();
    else for (const { node_id } of message.agents) dirty.add(node_id);
  } else if (
    message.kind === 'event' &&
    message.event.target.type === 'agent' &&
    message.event.event_type.startsWith('agent.')
  )
    dirty.add(message.event.target.id);
}

export function startLiveAgents(): void {
  onLiveMessage(markAgents);
  session.subscribe(() => {
    if (session.state().status === 'signed_out') dirty.clear();
  });
}
