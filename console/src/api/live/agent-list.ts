import { type Agent, type AgentSort, listAgents } from '@muster/protocol/http';
import { call, callBeforeEvents } from '../client.ts';
import { queryClient } from '../query-client.ts';
import { keys } from '../query-keys.ts';
import type { Person } from '../sign-in/session.ts';
import type { PendingSignIn } from '../sign-in/sign-in.ts';
import { provisional } from './query-invalidation.ts';

// Structural sharing is off, because comparing all agents on every change costs more than rendering them again.
const structuralSharing = false;

/** The query for all agents. Events update individual records (live/live-agents.ts). */
export const agentList = {
  queryKey: keys.agents,
  queryFn: ({ signal }: { signal: AbortSignal }) => call(listAgents, { signal }),
  structuralSharing,
};

/** Maximum number of agents on the first page of the list: more than fit on a screen. */
const firstPageSize = 100;

const firstPage = (sort: AgentSort) => ({ sort, limit: String(firstPageSize) });

/** The query for the first agents in a given order, to show while the list of all agents loads. */
export const firstAgents = (sort: AgentSort) => ({
  queryKey: keys.firstAgents(sort),
  queryFn: ({ signal }: { signal: AbortSignal }) => callBeforeEvents(listAgents, { query: firstPage(sort), signal }),
  structuralSharing,
  meta: provisional,
});

/** Sort orders that the orchestrator supports for the agents page, by the page's URL parameter `sort`. */
const sorts: Readonly<Record<string, AgentSort>> = { agent: 'name', '-agent': '-name' };

/** Sort order of the agents page if its URL has no parameter `sort`. */
export const defaultAgentOrder = 'agent';

/**
 * Returns the sort order in which to request the first agents; null if the orchestrator does not support the page's
 * order.
 * @param order URL parameter `sort` of the agents page
 */
export const firstAgentsSort = (order: string | null): AgentSort | null => sorts[order ?? defaultAgentOrder] ?? null;

const sortOfPage = () => firstAgentsSort(new URLSearchParams(window.location.search).get('sort'));

/** The first page of agents, requested while a sign-in waits for confirmation. */
interface EarlyAgents {
  readonly sort: AgentSort;
  /** Time of the request, from `performance.now()`. */
  readonly requestedAt: number;
  readonly request: Promise<Agent[]>;
  /** Undefined until the response arrives. */
  agents: Agent[] | undefined;
}
/** If the operator refuses a sign-in, its agents are removed from memory together with its session data. */
const early = new WeakMap<Person, EarlyAgents>();

/** Maximum age of agents that are shown before the list of all agents arrives, in milliseconds. */
const maxEarlyAge = 30_000;

/**
 * Requests the first agents before the operator confirms a sign-in, so that the page has rows to show as soon as the
 * session begins. `prefetchAgents` caches them.
 */
export function requestFirstAgents({ person, call }: PendingSignIn): void {
  const sort = sortOfPage();
  if (sort === null) return;
  const request = call(listAgents, { query: firstPage(sort) });
  const requested: EarlyAgents = { sort, requestedAt: performance.now(), request, agents: undefined };
  early.set(person, requested);
  request.then(
    (agents) => {
      requested.agents = agents;
    },
    () => {
      // Ignores the error, because `prefetchAgents` requests the agents again.
    },
  );
}

/**
 * Requests the data of the agents page: the first agents, then all.
 * @param person the session's operator
 */
export function prefetchAgents(person: Person): void {
  const sort = sortOfPage();
  if (sort !== null) {
    const first = firstAgents(sort);
    const requested = early.get(person);
    const isFresh = requested !== undefined && performance.now() - requested.requestedAt <= maxEarlyAge;
    const found = isFresh && requested.sort === sort ? requested : null;
    void queryClient.prefetchQuery({
      ...first,
      ...(found && { queryFn: (context) => found.request.catch(() => first.queryFn(context)) }),
      ...(found?.agents && { initialData: found.agents }),
    });
  }
  early.delete(person);
  void queryClient.prefetchQuery(agentList);
}
