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

/** From what a person typed to the agents that are meant, the same way for every verb. */

/** What verbs with `selectorOption` and `allOption` are handed, besides the names. */
export interface AgentOptions {
  selector?: string;
  all?: boolean;
}

/** For the help of an argument that names agents. */
export const agentNaming = 'name, node id, or the beginning of either if only one agent fits';
export const severalNaming = `${agentNaming}; several with spaces or commas between; - reads them from standard input`;

export const selectorOption = (): Option =>
  new Option('-l, --selector <selector>', 'those that a selector matches, e.g. "role=web site in (paris,rome)"');

interface Match {
  /** Empty: nothing fits. More than one: it does not say which. */
  readonly fitting: readonly Agent[];
  readonly nearest: readonly string[];
}

/** `web` is the beginning of `web-1`, but `web-1` is not that of `web-10`: numbers tell machines apart. */
const beginsWith = (name: string | null, wanted: string): boolean =>
  name?.startsWith(wanted) === true && !(/\p{Nd}$/u.test(wanted) && /^\p{Nd}/u.test(name.slice(wanted.length)));

/**
 * Which agent is meant: by its whole name or node id, else by the beginning of either if only one agent fits.
 * Hostnames do not count: an agent that nobody approved chooses its own.
 */
export function matchAgent(wanted: string, agents: readonly Agent[]): Match {
  const id = wanted.toLowerCase();
  const exact = agents.find(({ name, node_id }) => name === wanted || node_id === id);
  if (exact) return { fitting: [exact], nearest: [] };
  const fitting = agents.filter(({ name, node_id }) => beginsWith(name, wanted) || node_id.startsWith(id));
  if (fitting.length > 0) return { fitting, nearest: [] };
  const names = agents.flatMap(({ name }) => (name === null ? [] : [name]));
  return { fitting, nearest: nearestFew(wanted, names) };
}

/** The first few by name, how many more there are: `web-1, web-2, web-3 and 409 more`. */
export function fewNames(agents: readonly Pick<Agent, 'name' | 'node_id'>[], most = 5): string {
  // Of one too many nothing is won by counting it.
  const shown = agents.length === most + 1 ? agents : agents.slice(0, most);
  const more = agents.length - shown.length;
  return `${shown.map((agent) => sanitiseLine(agentLabel(agent))).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

const listVerb = 'See the agents there are: muster agents list';

function notFound(wanted: string, { nearest }: Match, agents: readonly Agent[]): CliError {
  const hints: string[] = [];
  const waiting = agents.find(({ name, initial_hostname }) => name === null && initial_hostname === wanted);
  if (nearest.length > 0) hints.push(`Did you mean ${nearest.join(', ')}?`);
  if (/[=!]/.test(wanted)) hints.push(`Agents by their tags: --selector ${JSON.stringify(wanted)}.`);
  if (waiting !== undefined)
    hints.push(
      `An agent that says it is ${sanitiseLine(wanted)} has no name yet: it is ${waiting.node_id.slice(0, 12)}.`,
    );
  return new CliError(
    exits.failed,
    'agent_not_found',
    `there is no agent ${JSON.stringify(wanted)}`,
    [...hints, listVerb].join(' '),
  );
}

const ambiguous = (wanted: string, fitting: readonly Agent[]): CliError =>
  new CliError(
    exits.failed,
    'agent_ambiguous',
    `${fitting.length} agents begin with ${JSON.stringify(wanted)}: ${fewNames(fitting)}`,
    'Type more of the name or node id.',
  );

/** The one agent that fits. @throws CliError that names the nearest, or those that fit */
function theOne(wanted: string, agents: readonly Agent[]): Agent {
  const match = matchAgent(wanted, agents);
  const [first] = match.fitting;
  if (first === undefined) throw notFound(wanted, match, agents);
  if (match.fitting.length > 1) throw ambiguous(wanted, match.fitting);
  return first;
}

/**
 * For verbs that concern one agent only.
 * @param wanted name, node id, or a beginning of either that fits one agent only
 * @throws CliError that names the nearest, or those that fit
 */
export async function chooseAgent(call: Client, wanted: string): Promise<Agent> {
  if (wanted === '') throw usageError('an agent was named by nothing at all');
  if (isKeyId(wanted) || isName(wanted)) {
    // The usual case costs one record, however many agents there are.
    try {
      return await call(getAgent, { params: { node_id: wanted } });
    } catch (error) {
      if (!(error instanceof ApiError) || error.problem.code !== 'agent_not_found') throw error;
    }
  }
  return theOne(wanted, await call(listAgents, {}));
}

/** Each agent once, in the order in which they were named; all that is wrong with the names at once. */
function chooseByName(wanted: readonly string[], agents: readonly Agent[]): Agent[] {
  const found = new Map<string, Agent>();
  const faults: CliError[] = [];
  for (const name of wanted) {
    try {
      const agent = theOne(name, agents);
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

/** `web-1 web-2`, `web-1,web-2`, and `-` for what standard input has. */
async function namesOf({ stdin }: Pick<Context, 'stdin'>, typed: readonly string[]): Promise<string[]> {
  const words: string[] = [];
  for (const word of typed) words.push(...(word === '-' ? (await stdin()).split(/[\s,]+/) : word.split(',')));
  const names = words.map((word) => word.trim()).filter(Boolean);
  if (names.length === 0 && typed.length > 0) throw usageError('an agent was named by nothing at all');
  return names;
}

/**
 * The agents that were named, or that a selector matches, or all: with one request, whatever their number.
 * @param typed   the words that name agents
 * @param status  of a selector and of `--all`: only agents of this status count; named ones are told by the orchestrator
 * @returns at least one
 * @throws CliError for none, with what was probably meant
 */
export async function chooseAgents(
  context: Pick<Context, 'connect' | 'stdin'>,
  typed: readonly string[],
  { selector, all = false }: AgentOptions,
  { status = 'approved' }: { status?: AgentStatus | 'any' } = {},
): Promise<Agent[]> {
  if (typed.length > 0 && selector !== undefined)
    throw usageError('agents are either named or selected', 'Leave the names away, or --selector.');
  if (all && (typed.length > 0 || selector !== undefined))
    throw usageError('--all stands for every agent', 'Leave it away, or the names and --selector.');
  if (typed.length === 0 && selector === undefined && !all)
    throw usageError('no agent was named', 'Name one or several, or select them: --selector role=web');
  if (selector?.trim() === '') throw usageError('an empty selector matches no agent', 'Name a tag, e.g. -l role=web');
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
    selector === undefined ? listVerb : 'See the agents with their tags: muster agents list',
  );
}

/**
 * Whether one agent was asked for by its name: then `--json` prints what became of it alone, otherwise an array.
 */
export const isOneNamed = (typed: readonly string[], agents: readonly Agent[]): boolean =>
  typed.length === 1 && agents.length === 1 && typed[0] !== '-' && !typed[0]?.includes(',');

/** As many agents as nobody means by mistake. */
const few = 3;

/**
 * Asks before something is done to more than a few agents.
 * @param doing  `Tag`, `Reject`: the question names how many agents, and which
 * @param always ask also when they are few
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
    throw usageError(`${doing} ${which}${after}: there is nobody to ask`, 'Say that you mean it: --yes');
  const question = agents.length === 1 ? `${doing} ${which}${after}?` : `${doing}${after} ${which}?`;
  if (!(await prompt.confirm(question)))
    throw new CliError(exits.failed, 'cancelled', 'cancelled; nothing was changed');
}
