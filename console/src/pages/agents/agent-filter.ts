import type { Agent } from '@muster/protocol/http';
import { isEmpty, matchesSelector, parseSelector } from '@muster/protocol/selector';
import { stateOf } from './agent-state.ts';

/** Which agents the page shows, decided on what its address says. Pure. */

export const agentTabs = ['all', 'approved', 'connected', 'away', 'off', 'pending', 'rejected'] as const;
export type AgentTab = (typeof agentTabs)[number];

/** Written once an agent: it is looked through at every key. */
const texts = new WeakMap<Agent, string>();
/** Text of a hostile length is found by its beginning. */
const most = 256;

function textOf(agent: Agent): string {
  const known = texts.get(agent);
  if (known !== undefined) return known;
  const { name, initial_hostname, node_id, initial_ip, tags, attributes } = agent;
  const hostname = Object.hasOwn(attributes, 'hostname') ? (attributes.hostname as string) : '';
  const parts = [name ?? '', initial_hostname, hostname, node_id, initial_ip];
  for (const [key, value] of Object.entries(tags)) parts.push(`${key}=${value}`);
  const text = parts.map((part) => part.slice(0, most).toLowerCase()).join('\n');
  texts.set(agent, text);
  return text;
}

/** Each word must be somewhere in it. */
function searched(agents: readonly Agent[], search: string): readonly Agent[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return agents;
  return agents.filter((agent) => {
    const text = textOf(agent);
    return words.every((word) => text.includes(word));
  });
}

/** A selector that does not read chooses nothing away: the field says what is wrong with it. */
function selected(agents: readonly Agent[], text: string): readonly Agent[] {
  const parsed = parseSelector(text);
  if (!parsed.ok || isEmpty(parsed.selector)) return agents;
  return agents.filter((agent) => matchesSelector(parsed.selector, agent));
}

function inTab(agent: Agent, tab: AgentTab, off: ReadonlySet<string>): boolean {
  if (tab === 'all') return true;
  if (tab === 'approved') return agent.status === 'approved';
  if (tab === 'off') return off.has(agent.node_id);
  return stateOf(agent) === tab;
}

export interface AgentChoice {
  readonly rows: readonly Agent[];
  /** How many each tab would show. */
  readonly counts: Readonly<Record<AgentTab, number>>;
}

/** @param off ids of agents that are not as they should be */
export function chooseAgents(
  agents: readonly Agent[],
  { search, selector, tab }: { readonly search: string; readonly selector: string; readonly tab: AgentTab },
  off: ReadonlySet<string>,
): AgentChoice {
  const found = selected(searched(agents, search), selector);
  const counts = Object.fromEntries(agentTabs.map((each) => [each, 0])) as Record<AgentTab, number>;
  for (const agent of found) for (const each of agentTabs) if (inTab(agent, each, off)) counts[each] += 1;
  return { counts, rows: tab === 'all' ? found : found.filter((agent) => inTab(agent, tab, off)) };
}
