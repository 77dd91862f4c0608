import { isKeyId, isName } from '@muster/protocol';
import { ApiError, type Client } from '@muster/protocol/client';
import { type Agent, type AgentStatus, getAgent, listAgents } from '@muster/protocol/http';
import { Option } from 'commander';
import type { Context } from '../context/context.ts';
import { CliError, exits, usageError } from '../exit.ts';
import { agentLabel } from '../text/agent-label.ts';
import { nearestFew } from '../text/nearest.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { counted } from '../text/style.ts';
import { showingFault } from './selector-fault.ts';

/** Resolves the agents on the command line. The rules are the same for all commands. */

/** Options of commands with `selectorOption` and `allOption`. */
export interface AgentOptions {
  selector?: string;
  all?: boolean;
}

/** Help text for an argument that identifies an agent. */
export const agentNaming = 'name, node id, or the beginning of either if only one agent matches';
export const severalNaming = `${agentNaming}; separate several with spaces or commas; - reads them from standard input`;

export const selectorOption = (): Option =>
  new Option('-l, --selector <selector>', 'Agents that match, e.g. "role=web site=paris"');

interface Match {
  /** Matching agents; several if the name is ambiguous. */
  readonly fitting: readonly Agent[];
  readonly nearest: readonly string[];
}

/**
 * Reports whether a name begins with the typed text. A match must not end within a number, so `web-1` does not match
 * `web-10`.
 */
const beginsWith = (name: string | null, prefix: string): boolean =>
  name?.startsWith(prefix) === true && !(/\p{Nd}$/u.test(prefix) && /^\p{Nd}/u.test(name.slice(prefix.length)));

/**
 * Matches an agent by its complete name or node ID. If no agent has it, matches by the beginning of either. Ignores
 * hostnames, because a pending agent chooses its own.
 */
export function matchAgent(nameOrId: string, agents: readonly Agent[]): Match {
  const id = nameOrId.toLowerCase();
  const exact = agents.find(({ name, node_id }) => name === nameOrId || node_id === id);
  if (exact) return { fitting: [exact], nearest: [] };
  const fitting = agents.filter(({ name, node_id }) => beginsWith(name, nameOrId) || node_id.startsWith(id));
  if (fitting.length > 0) return { fitting, nearest: [] };
  const names = agents.flatMap(({ name }) => (name === null ? [] : [name]));
  return { fitting, nearest: nearestFew(nameOrId, names) };
}

/** Returns the first names and the number of remaining names: `web-1, web-2, web-3 and 409 more`. */
export function fewNames(agents: readonly Pick<Agent, 'name' | 'node_id'>[], maxNames = 5): string {
  // "and 1 more" is no shorter than the name itself.
  const shown = agents.length === maxNames + 1 ? agents : agents.slice(0, maxNames);
  const more = agents.length - shown.length;
  return `${shown.map((agent) => sanitiseLine(agentLabel(agent))).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const listVerb = 'List the agents: muster agents list';

function notFound(nameOrId: string, { nearest }: Match, agents: readonly Agent[]): CliError {
  const remedies: string[] = [];
  const waiting = agents.find(({ name, initial_hostname }) => name === null && initial_hostname === nameOrId);
  if (nearest.length > 0) remedies.push(`Did you mean ${nearest.join(', ')}?`);
  if (/[=!]/.test(nameOrId)) remedies.push(`To select agents by tag: --selector ${JSON.stringify(nameOrId)}.`);
  if (waiting !== undefined)
    remedies.push(
      `A pending agent with the hostname ${sanitiseLine(nameOrId)} has no name yet; its node id is ${waiting.node_id.slice(0, 12)}.`,
    );
  return new CliError(
    exits.failed,
    'agent_not_found',
    `there is no agent ${JSON.stringify(nameOrId)}`,
    [...remedies, listVerb].join(' '),
  );
}

const ambiguous = (nameOrId: string, fitting: readonly Agent[]): CliError =>
  new CliError(
    exits.failed,
    'agent_ambiguous',
    `${fitting.length} agents begin with ${JSON.stringify(nameOrId)}: ${fewNames(fitting)}`,
    'Type more of the name or node id.',
  );

/**
 * Returns the only match.
 * @throws CliError that lists all matches or suggests similar names
 */
function onlyMatch(nameOrId: string, agents: readonly Agent[]): Agent {
  const match = matchAgent(nameOrId, agents);
  const [first] = match.fitting;
  if (first === undefined) throw notFound(nameOrId, match, agents);
  if (match.fitting.length > 1) throw ambiguous(nameOrId, match.fitting);
  return first;
}

/**
 * Resolves the agent for a command that takes one agent.
 * @param nameOrId name, node id, or the beginning of either if only one agent matches
 * @throws CliError that lists all matches, or suggests similar names
 */
export async function chooseAgent(call: Client, nameOrId: string): Promise<Agent> {
  if (nameOrId === '') throw usageError('the agent name is empty');
  if (isKeyId(nameOrId) || isName(nameOrId)) {
    // Looks up a complete name or ID directly, because listing a large fleet takes many requests.
    try {
      return await call(getAgent, { params: { node_id: nameOrId } });
    } catch (error) {
      if (!(error instanceof ApiError) || error.problem.code !== 'agent_not_found') throw error;
    }
  }
  return onlyMatch(nameOrId, await call(listAgents, {}));
}

/** Resolves each agent once, in the typed order. Throws a single error for all names that cannot be resolved. */
function chooseByName(namesOrIds: readonly string[], agents: readonly Agent[]): Agent[] {
  const found = new Map<string, Agent>();
  const faults: CliError[] = [];
  for (const name of namesOrIds) {
    try {
      const agent = onlyMatch(name, agents);
      found.set(agent.node_id, agent);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      faults.push(error);
    }
  }
  const [first] = faults;
  if (first === undefined) return [...found.values()];
  if (faults.length === 1) throw first;
  const remedies = new Set(faults.map(({ remedy }) => remedy?.replace(listVerb, '').trim() ?? ''));
  throw new CliError(
    exits.failed,
    first.code,
    faults.map(({ message }) => message).join('\n'),
    [...remedies, listVerb].filter(Boolean).join('\n'),
  );
}

/** Parses agent names: `web-1 web-2`, `web-1,web-2`, and `-` for standard input. */
async function namesOf({ stdin }: Pick<Context, 'stdin'>, typed: readonly string[]): Promise<string[]> {
  const words: string[] = [];
  for (const word of typed) words.push(...(word === '-' ? (await stdin()).split(/[\s,]+/) : word.split(',')));
  const names = words.map((word) => word.trim()).filter(Boolean);
  if (names.length === 0 && typed.length > 0) throw usageError('the agent name is empty');
  return names;
}

/** Checks that the agents are specified in exactly one way. @throws CliError (usage) */
export function requireAgents(typed: readonly string[], { selector, all = false }: AgentOptions): void {
  if (typed.length > 0 && selector !== undefined)
    throw usageError('agent names cannot be combined with --selector', 'Drop the names, or drop --selector.');
  if (all && (typed.length > 0 || selector !== undefined))
    throw usageError(
      '--all cannot be combined with agent names or --selector',
      'Drop --all, or drop the names and --selector.',
    );
  if (typed.length === 0 && selector === undefined && !all)
    throw usageError('no agent was named', 'Specify one or more agents, or select them: --selector role=web');
  if (selector?.trim() === '')
    throw usageError('an empty selector matches no agent', 'Specify a tag, such as -l role=web');
}

/**
 * Resolves the named agents, the agents that a selector matches, or all agents, with one request.
 * @param typed the arguments that name agents
 * @param status restricts a selector and `--all` to agents with this status; the orchestrator checks agents specified
 *   by name
 * @returns at least one agent
 * @throws CliError with suggestions if no agent matches
 */
export async function chooseAgents(
  context: Pick<Context, 'connect' | 'stdin'>,
  typed: readonly string[],
  options: AgentOptions,
  { status = 'approved' }: { status?: AgentStatus | 'any' } = {},
): Promise<Agent[]> {
  requireAgents(typed, options);
  const { selector } = options;
  const names = await namesOf(context, typed);
  const { call } = await context.connect();
  const [only] = names;
  if (only !== undefined && names.length === 1) return [await chooseAgent(call, only)];
  if (names.length > 0) return chooseByName(names, await call(listAgents, {}));
  const agents = await call(listAgents, {
    query: {
      sort: 'name',
      ...(status === 'any' ? {} : { status }),
      ...(selector === undefined ? {} : { filter: selector }),
    },
  }).catch(showingFault(selector ?? ''));
  if (agents.length > 0) return agents;
  const which = status === 'any' ? 'agent' : `${status} agent`;
  throw new CliError(
    exits.failed,
    'agent_not_found',
    selector === undefined ? `there is no ${which}` : `no ${which} matches ${JSON.stringify(selector)}`,
    selector === undefined ? listVerb : 'List the agents with their tags: muster agents list',
  );
}

/**
 * Reports whether exactly one agent was specified by name, in which case `--json` prints an object instead of an array.
 */
export const isOneNamed = (typed: readonly string[], agents: readonly Agent[]): boolean =>
  typed.length === 1 && agents.length === 1 && typed[0] !== '-' && !typed[0]?.includes(',');

/** Maximum number of agents that are changed without confirmation. */
const few = 3;

/**
 * Asks for confirmation before more than a few agents are changed.
 * @param doing the start of the question, with its verb, such as `Tag` or `Reject`
 * @param always whether to ask even for a few agents
 */
export async function agreeTo(
  { out, prompt }: Pick<Context, 'out' | 'prompt'>,
  agents: readonly Agent[],
  {
    doing,
    after = '',
    yes = false,
    always = false,
  }: { doing: string; after?: string; yes?: boolean; always?: boolean },
): Promise<void> {
  if (yes || (!always && agents.length <= few)) return;
  const which = agents.length === 1 ? fewNames(agents) : `${counted(agents.length, 'agent')}: ${fewNames(agents)}`;
  if (!prompt.interactive || out.json)
    throw usageError(
      `confirmation is needed to ${doing.charAt(0).toLowerCase()}${doing.slice(1)} ${which}${after}`,
      'There is no terminal to ask on. Confirm with --yes.',
    );
  const question = agents.length === 1 ? `${doing} ${which}${after}?` : `${doing}${after} ${which}?`;
  if (!(await prompt.confirm(question))) throw new CliError(exits.failed, 'cancelled', 'canceled; nothing was changed');
}
