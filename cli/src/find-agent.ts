import { isKeyId, isName } from '@muster/protocol';
import { ApiError, type Client } from '@muster/protocol/client';
import { type Agent, getAgent, listAgents } from '@muster/protocol/http';
import { CliError, exits, usageError } from './exit.ts';
import { nearest } from './nearest.ts';
import { sanitiseLine } from './sanitise.ts';

/** What a person calls an agent: its name, or its id while it has none. */
export const agentLabel = (agent: Pick<Agent, 'name' | 'node_id'>): string => agent.name ?? agent.node_id.slice(0, 12);

export type Match =
  | { readonly kind: 'one'; readonly agent: Agent }
  | { readonly kind: 'many'; readonly agents: readonly Agent[] }
  | { readonly kind: 'none'; readonly nearest: string | null };

/**
 * Which agent is meant: by its whole name or node id, else by the beginning of either if only one agent fits.
 * Hostnames do not count: an agent that nobody approved chooses its own.
 */
export function matchAgent(wanted: string, agents: readonly Agent[]): Match {
  const exact = agents.find(({ name, node_id }) => name === wanted || node_id === wanted.toLowerCase());
  if (exact) return { kind: 'one', agent: exact };
  const fitting = agents.filter(
    ({ name, node_id }) => name?.startsWith(wanted) || node_id.startsWith(wanted.toLowerCase()),
  );
  const [first] = fitting;
  if (first && fitting.length === 1) return { kind: 'one', agent: first };
  if (first) return { kind: 'many', agents: fitting };
  const names = agents.flatMap(({ name }) => (name === null ? [] : [name]));
  return { kind: 'none', nearest: nearest(wanted, names) };
}

/**
 * @param wanted name, node id, or a beginning of either that fits one agent only
 * @throws CliError that names the nearest, or those that fit
 */
export async function findAgent(call: Client, wanted: string): Promise<Agent> {
  if (wanted === '') throw usageError('an agent was named by nothing at all');
  if (isKeyId(wanted) || isName(wanted)) {
    // The usual case costs one record, however many agents there are.
    try {
      return await call(getAgent, { params: { node_id: wanted } });
    } catch (error) {
      if (!(error instanceof ApiError) || error.problem.code !== 'agent_not_found') throw error;
    }
  }
  const match = matchAgent(wanted, await call(listAgents, {}));
  if (match.kind === 'one') return match.agent;
  if (match.kind === 'many') {
    const some = match.agents.slice(0, 5).map(agentLabel).join(', ');
    const more = match.agents.length > 5 ? ', …' : '';
    throw new CliError(
      exits.failed,
      'agent_ambiguous',
      `${match.agents.length} agents begin with ${JSON.stringify(wanted)}: ${sanitiseLine(some)}${more}`,
      'Type more of the name or node id.',
    );
  }
  throw new CliError(
    exits.failed,
    'agent_not_found',
    `there is no agent ${JSON.stringify(wanted)}`,
    match.nearest === null
      ? 'See the agents there are: muster agents list'
      : `Did you mean ${match.nearest}? See the agents there are: muster agents list`,
  );
}

/** Several agents at once; one that was named twice is there once. */
export async function findAgents(call: Client, wanted: readonly string[]): Promise<Agent[]> {
  const found = new Map<string, Agent>();
  for (const name of wanted) {
    const agent = await findAgent(call, name);
    found.set(agent.node_id, agent);
  }
  return [...found.values()];
}

/** The names of a few agents one by one, of many at once. One that is gone has none. */
export async function agentNames(call: Client, ids: ReadonlySet<string>): Promise<Map<string, string>> {
  const agents =
    ids.size > 20
      ? await call(listAgents, {})
      : await Promise.all([...ids].map((node_id) => call(getAgent, { params: { node_id } }).catch(() => null)));
  return new Map(agents.flatMap((agent) => (agent === null ? [] : [[agent.node_id, agentLabel(agent)] as const])));
}
