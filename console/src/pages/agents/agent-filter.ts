import type { Agent } from '@muster/protocol/http';
import { isEmpty, matchesSelector, parseSelector } from '@muster/protocol/selector';
import type { SyncState } from '@muster/protocol/sync-state';
import { agentSync, type FleetSync } from '../reconcile/agent-sync.ts';
import { stateOf } from './agent-state.ts';

/** Filters agents by the page's URL parameters. */

export const agentTabs = [
  ...(['all', 'approved', 'connected', 'offline'] as const),
  ...(['in_sync', 'off', 'outdated', 'never_applied'] as const),
  ...(['pending', 'rejected'] as const),
] as const;
export type AgentTab = (typeof agentTabs)[number];

const key = '[A-Za-z0-9._/:-]+';
/** A selector term that is more than a word: `!key`, `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`. */
const term = new RegExp(
  `(?<!\\S)(?:!${key}|${key}!?=(?:"(?:[^"\\\\]|\\\\.)*"?|\\S*)|${key}\\s+(?:not)?in\\s*\\([^)]*\\)?)(?!\\S)`,
  'g',
);

/** Splits the search text into words and a selector. Errors in the selector keep their column in the search text. */
export function splitSearch(text: string): { readonly search: string; readonly selector: string } {
  const blank = (part: string) => ' '.repeat(part.length);
  const search = text.replace(term, blank);
  let selector = '';
  for (let at = 0; at < text.length; at++) selector += search[at] === text[at] ? ' ' : text[at];
  return { search: search.trim(), selector: selector.trimEnd() };
}

/** Searchable text of each agent. Cached because every keystroke searches all agents. */
const searchTexts = new WeakMap<Agent, string>();
/** Maximum number of characters to search per field. Agents can report very long values. */
const maxFieldLength = 256;

function searchTextOf(agent: Agent): string {
  const known = searchTexts.get(agent);
  if (known !== undefined) return known;
  const { name, initial_hostname, node_id, initial_ip, tags, attributes } = agent;
  const hostname = Object.hasOwn(attributes, 'hostname') ? (attributes.hostname as string) : '';
  const parts = [name ?? '', initial_hostname, hostname, node_id, initial_ip];
  for (const [key, value] of Object.entries(tags)) parts.push(`${key}=${value}`);
  const text = parts.map((part) => part.slice(0, maxFieldLength).toLowerCase()).join('\n');
  searchTexts.set(agent, text);
  return text;
}

/** Returns the agents whose search text contains every word. */
function applySearch(agents: readonly Agent[], search: string): readonly Agent[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return agents;
  return agents.filter((agent) => {
    const text = searchTextOf(agent);
    return words.every((word) => text.includes(word));
  });
}

/**
 * Returns the agents that match the selector. An invalid selector matches all agents; the selector field shows the
 * error.
 */
function applySelector(agents: readonly Agent[], text: string): readonly Agent[] {
  const parsed = parseSelector(text);
  if (!parsed.ok || isEmpty(parsed.selector)) return agents;
  return agents.filter((agent) => matchesSelector(parsed.selector, agent));
}

/** Maximum number of agents to index in a step of {@link indexSearch}. */
const agentsPerStep = 500;

/** Indexes agents in steps before the first search, so that searching many agents is fast. */
export function* indexSearch(agents: readonly Agent[]): Generator<undefined, void> {
  for (const [index, agent] of agents.entries()) {
    searchTextOf(agent);
    if (index % agentsPerStep === agentsPerStep - 1) yield;
  }
}

/** Tabs by sync state. Accepted drift has a separate list, on the page of out-of-sync agents. */
const syncTabs: Readonly<Record<SyncState, AgentTab | null>> = {
  in_sync: 'in_sync',
  out_of_sync: 'off',
  outdated: 'outdated',
  accepted: null,
  never_applied: 'never_applied',
};

function syncTabOf(agent: Agent, sync: FleetSync | null): AgentTab | null {
  const state = agentSync(agent, sync);
  return state === null ? null : syncTabs[state];
}

const isInTab = (agent: Agent, tab: AgentTab, sync: FleetSync | null): boolean =>
  tab === 'all' ||
  (tab === 'approved' ? agent.status === tab : stateOf(agent) === tab || syncTabOf(agent, sync) === tab);

type AgentCounts = Readonly<Record<AgentTab, number>>;

/** Counts the agents on each tab. */
function countAgents(agents: readonly Agent[], sync: FleetSync | null): AgentCounts {
  const counts = Object.fromEntries(agentTabs.map((tab) => [tab, 0])) as Record<AgentTab, number>;
  counts.all = agents.length;
  for (const agent of agents) {
    counts[stateOf(agent)] += 1;
    const tab = syncTabOf(agent, sync);
    if (tab !== null) counts[tab] += 1;
  }
  counts.approved = counts.connected + counts.offline;
  return counts;
}

export interface AgentChoice {
  readonly rows: readonly Agent[];
  readonly counts: AgentCounts;
}

/** Returns the agents that match the filters, and how many are on each tab. */
export function chooseAgents(
  agents: readonly Agent[],
  { search, selector, tab }: { readonly search: string; readonly selector: string; readonly tab: AgentTab },
  sync: FleetSync | null,
): AgentChoice {
  const found = applySelector(applySearch(agents, search), selector);
  return {
    counts: countAgents(found, sync),
    rows: tab === 'all' ? found : found.filter((agent) => isInTab(agent, tab, sync)),
  };
}
