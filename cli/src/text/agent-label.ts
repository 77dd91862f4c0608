import type { Client } from '@muster/protocol/client';
import { type Agent, getAgent, listAgents } from '@muster/protocol/http';
import { age, type Style } from './style.ts';
import type { Column } from './table.ts';

/** Returns an agent's name; the first characters of its ID if it has no name. */
export const agentLabel = (agent: Pick<Agent, 'name' | 'node_id'>): string => agent.name ?? agent.node_id.slice(0, 12);

const names = new Intl.Collator('en', { numeric: true });

/** Orders agents by name in natural order, `web-2` before `web-10`, and agents without a name last. */
export const byLabel = (one: Pick<Agent, 'name' | 'node_id'>, other: Pick<Agent, 'name' | 'node_id'>): number =>
  Number(one.name === null) - Number(other.name === null) || names.compare(agentLabel(one), agentLabel(other));

type Link = Pick<Agent, 'connected' | 'last_seen_at'>;

/** Describes whether an agent is connected or for how long it has been offline. */
const connectionText = ({ connected, last_seen_at }: Link, { now }: Pick<Style, 'now'>): string =>
  connected ? 'connected' : `offline for ${age(last_seen_at, now)}`;

/** The column of a list that shows whether each agent is connected. */
export const connectionColumn = (style: Style): Column<Link> => ({
  heading: 'CONNECTION',
  text: (agent) => connectionText(agent, style),
  paint: (text, { connected }, { color }) => (connected ? color.green(text) : color.red(text)),
});

/** Returns each tag as it is typed: `role=web`, or only the key of a tag without a value. */
export const tagTexts = (tags: Readonly<Record<string, string>>): string[] =>
  Object.entries(tags).map(([key, value]) => (value === '' ? key : `${key}=${value}`));

/** Returns names by node ID. Requests a few agents individually, and many with one list. Omits removed agents. */
export async function agentNames(call: Client, ids: ReadonlySet<string>): Promise<Map<string, string>> {
  const agents =
    ids.size > 20
      ? await call(listAgents, {})
      : await Promise.all([...ids].map((node_id) => call(getAgent, { params: { node_id } }).catch(() => null)));
  return new Map(agents.flatMap((agent) => (agent === null ? [] : [[agent.node_id, agentLabel(agent)] as const])));
}
