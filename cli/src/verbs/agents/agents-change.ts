import { isName } from '@muster/protocol';
import { ApiError, type Client } from '@muster/protocol/client';
import {
  type Agent,
  deleteTag,
  getAgent,
  listAgents,
  putTag,
  putTags,
  removeAgent,
  setAgentStatus,
} from '@muster/protocol/http';
import { limits } from '@muster/protocol/wire';
import type { Command } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import {
  type AgentOptions,
  agentNaming,
  agreeTo,
  chooseAgent,
  chooseAgents,
  isOneNamed,
  selectorOption,
  severalNaming,
} from '../../execution/choose-agents.ts';
import { eachOf } from '../../execution/each.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { agentLabel, tagTexts } from '../../text/agent-label.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { parseTag } from '../../text/values.ts';

/** Maximum number of agents to change in parallel. */
const atOnce = 8;

interface ManyOptions extends AgentOptions {
  yes?: boolean;
}

/** Help text for arguments that specify agents and tags. */
export const tagWords = `Agents, then tags as key=value. If all tags are only keys, separate agents by commas. Specify an agent by ${agentNaming}`;

/** Registers the `muster agents` commands that change agents. */
export function registerChanges(command: Command, act: Act): void {
  const many = (name: string, description: string) =>
    command
      .command(name)
      .description(description)
      .argument('[agents...]', severalNaming)
      .addOption(selectorOption())
      .option('-y, --yes', 'Do not ask for confirmation');
  many('approve', 'Approve agents; at the first approval, an agent gets its permanent name')
    .option('--all-pending', 'Approve every pending agent')
    .option('--name <name>', 'Name of a single agent; prompted for if omitted')
    .option('--hostnames', 'Name each agent after the hostname it reports')
    .addHelpText(
      'after',
      '\nWithout names, a selector picks among the pending agents.\n\nExamples:\n  $ muster agents approve 3f8c2b --name web-1\n  $ muster agents approve --all-pending --hostnames\n  $ muster agents approve -l attr.distro=debian --hostnames --yes',
    )
    .action(act(approve));
  many('reject', 'Reject agents: their links are closed, and their running work is canceled')
    .addHelpText('after', '\nExamples:\n  $ muster agents reject web-1\n  $ muster agents reject -l site=paris')
    .action(act(reject));
  many('remove', 'Remove rejected agents and their records')
    .addHelpText(
      'after',
      '\nWithout names, a selector picks among the rejected agents.\n\nExample:\n  $ muster agents remove web-1 --yes',
    )
    .action(act(remove));
  command
    .command('tag')
    .description('Set tags of agents')
    .argument('[words...]', tagWords)
    .addOption(selectorOption())
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster agents tag web-1 role=web site=paris\n  $ muster agents tag web-1 canary\n  $ muster agents tag web-1 web-2 site=paris\n  $ muster agents tag -l attr.distro=debian os=debian',
    )
    .action(act(tag));
  command
    .command('untag')
    .description('Remove tags from agents')
    .argument(
      '[words...]',
      `Agents separated by commas, then keys; with --selector, only keys. Specify an agent by ${agentNaming}`,
    )
    .addOption(selectorOption())
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster agents untag web-1 site\n  $ muster agents untag web-1,web-2 role site\n  $ muster agents untag -l site=paris site',
    )
    .action(act(untag));
}

/** Returns the first label of the hostname if it is a valid name; otherwise, an empty string. */
function proposedName({ attributes, initial_hostname }: Agent): string {
  const [label = ''] = (attributes.hostname ?? initial_hostname).split('.');
  return isName(label) ? label : '';
}

const nameFault = (name: string): string | undefined =>
  isName(name) ? undefined : 'A name has up to 64 letters, digits, - and _, and begins with a letter.';

/**
 * Checks an agent name.
 * @throws CliError (usage) if it is invalid
 */
export function requireName(name: string): void {
  const fault = nameFault(name);
  if (fault !== undefined) throw usageError(`${JSON.stringify(name)} is not a valid name`, fault);
}

interface ApproveOptions extends ManyOptions {
  name?: string;
  allPending?: boolean;
  hostnames?: boolean;
}

async function approve(context: Context, typed: string[], options: ApproveOptions): Promise<Exit> {
  const { out } = context;
  const { name, allPending = false, hostnames = false } = options;
  if (name !== undefined) requireName(name);
  if (name !== undefined && hostnames) throw usageError('--name cannot be combined with --hostnames');
  const choice = { ...options, all: allPending };
  const agents = await chooseAgents(context, typed, choice, { status: 'pending' });
  if (name !== undefined && agents.length > 1)
    throw usageError(
      `--name works for one agent; ${agents.length} agents match`,
      'To name each after its hostname: --hostnames',
    );
  // Without --hostnames, the prompt for each name serves as confirmation.
  if (hostnames) await agreeTo(context, agents, { doing: 'Approve', ...options });
  const { call } = await context.connect();
  const approved: Agent[] = [];
  const exit = await eachOf(context, agents, agentLabel, async (agent) => {
    approved.push(await approveOne(context, call, agent, { name, hostnames }));
  });
  if (out.json) out.data(isOneNamed(typed, agents) ? approved[0] : approved);
  return exit;
}

async function approveOne(
  context: Context,
  call: Client,
  agent: Agent,
  { name: given, hostnames }: { name: string | undefined; hostnames: boolean },
): Promise<Agent> {
  const { out } = context;
  if (agent.status !== 'approved' && agent.pin_source === 'first_use')
    out.warn(`${sanitiseLine(agentLabel(agent))} accepted the orchestrator’s key unverified at its first connection`);
  const name = agent.name === null ? (given ?? (await nameFor(context, agent, hostnames))) : given;
  const approved = await call(setAgentStatus, {
    params: { node_id: agent.node_id },
    body: { status: 'approved', ...(name === undefined ? {} : { name }) },
  });
  out.print(`Approved ${out.style.color.bold(sanitiseLine(agentLabel(approved)))} (${approved.node_id}).`);
  if (agent.status === 'rejected')
    out.note(
      `The agent reconnects within ${limits.rejectedRetryAfterSecs / 60} minutes; restart it to connect immediately.`,
    );
  return approved;
}

/** Returns the agent's hostname, or the name that the operator types. */
async function nameFor({ out, prompt }: Context, agent: Agent, hostnames: boolean): Promise<string> {
  const proposed = proposedName(agent);
  if (hostnames) {
    if (proposed !== '') return proposed;
    const hostname = JSON.stringify(agent.attributes.hostname ?? agent.initial_hostname);
    throw new CliError(
      exits.failed,
      'name_required',
      `its hostname ${hostname} is not a valid name`,
      `To give it a name: muster agents approve ${agent.node_id} --name NAME`,
    );
  }
  if (!prompt.interactive || out.json)
    throw usageError('a new agent needs a name', `To give it one: muster agents approve ${agent.node_id} --name NAME`);
  out.note(
    `Agent ${agent.node_id}\n  hostname ${sanitiseLine(agent.initial_hostname)}, from ${sanitiseLine(agent.initial_ip)}`,
  );
  return await prompt.ask('Permanent name:', proposed, nameFault);
}

async function reject(context: Context, typed: string[], options: ManyOptions): Promise<Exit> {
  const { out } = context;
  const agents = await chooseAgents(context, typed, options);
  await agreeTo(context, agents, { doing: 'Reject', ...options });
  const { call } = await context.connect();
  const rejected: Agent[] = [];
  const exit = await eachOf(context, agents, agentLabel, async (agent) => {
    rejected.push(await call(setAgentStatus, { params: { node_id: agent.node_id }, body: { status: 'rejected' } }));
    out.print(`Rejected ${sanitiseLine(agentLabel(agent))}.`);
  });
  if (out.json) out.data(rejected);
  return exit;
}

async function remove(context: Context, typed: string[], options: ManyOptions): Promise<Exit> {
  const { out } = context;
  const agents = await chooseAgents(context, typed, options, { status: 'rejected' });
  await agreeTo(context, agents, { doing: 'Remove', after: ' permanently', always: true, ...options });
  const { call } = await context.connect();
  const removed: string[] = [];
  const exit = await eachOf(context, agents, agentLabel, async (agent) => {
    await call(removeAgent, { params: { node_id: agent.node_id } });
    removed.push(agent.node_id);
    out.print(`Removed ${sanitiseLine(agentLabel(agent))}.`);
  });
  if (out.json) out.data({ removed });
  return exit;
}

/** Replaces all tags of each agent. */
export async function replaceTags(context: Context, words: string[], options: ManyOptions): Promise<Exit> {
  const { typed, pairs } = splitWords(words);
  const tags = Object.fromEntries(pairs.map(parseTag).map(({ key, value }) => [key, value]));
  const said = pairs.length === 0 ? 'no tags' : sanitiseLine(pairs.join(' '));
  return await retag(context, typed, options, {
    doing: `Keep only ${said}, and remove every other tag, on`,
    always: true,
    change: async (call, node_id) => void (await call(putTags, { params: { node_id }, body: { tags } })),
  });
}

/** Splits words into agents and tags. An agent name contains no equals sign. */
function splitWords(words: readonly string[]): { typed: string[]; pairs: string[] } {
  const first = words.findIndex((word) => word.includes('='));
  return { typed: words.slice(0, first < 0 ? undefined : first), pairs: first < 0 ? [] : words.slice(first) };
}

/** Refuses a tag that is the name of an agent, because `agents tag web-1 web-2` lacks a tag. */
async function requireNoAgent(call: Client, key: string): Promise<void> {
  if (!isName(key)) return;
  const isAgent = await call(getAgent, { params: { node_id: key } }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.problem.code === 'agent_not_found') return false;
      throw error;
    },
  );
  if (isAgent)
    throw usageError(
      `${key} is an agent, and no tag was specified`,
      `To tag several agents: muster agents tag web-1,web-2 canary. To set a tag of this name: ${key}=`,
    );
}

/** Changes the tags of each agent and prints the result. */
async function retag(
  context: Context,
  typed: string[],
  options: ManyOptions,
  {
    doing,
    change,
    always = false,
  }: { doing: string; always?: boolean; change: (call: Client, node_id: string) => Promise<void> },
): Promise<Exit> {
  const { out } = context;
  const agents = await chooseAgents(context, typed, options);
  await agreeTo(context, agents, { doing, always, ...options });
  const { call } = await context.connect();
  const changed = new Set<string>();
  const one = async ({ node_id }: Agent) => {
    await change(call, node_id);
    changed.add(node_id);
  };
  const exit = await eachOf(context, agents, agentLabel, one, atOnce);
  const [only] = agents;
  // Reads the new tags of all agents with one request.
  const now =
    agents.length === 1 && only
      ? [await chooseAgent(call, only.node_id)]
      : await call(listAgents, { query: { sort: 'name' } });
  const results = now
    .filter(({ node_id }) => changed.has(node_id))
    .map(({ node_id, name, tags }) => ({ node_id, name, tags }));
  if (out.json)
    out.data(isOneNamed(typed, agents) ? { node_id: results[0]?.node_id, tags: results[0]?.tags } : results);
  for (const agent of results) {
    out.print(`${sanitiseLine(agentLabel(agent))}: ${sanitiseLine(tagTexts(agent.tags).join(' ')) || 'no tags'}`);
  }
  return exit;
}

export async function tag(context: Context, words: string[], options: ManyOptions): Promise<Exit> {
  const isKeysOnly = !words.some((word) => word.includes('='));
  const agentCount = options.selector === undefined ? 1 : 0;
  const { typed, pairs } = isKeysOnly
    ? { typed: words.slice(0, agentCount), pairs: words.slice(agentCount) }
    : splitWords(words);
  const tags = pairs.map(parseTag);
  if (tags.length === 0)
    throw usageError('no tag was specified', 'Specify agents, then tags: muster agents tag web-1 role=web');
  if (isKeysOnly) {
    const { call } = await context.connect();
    for (const { key } of tags) await requireNoAgent(call, key);
  }
  return await retag(context, typed, options, {
    doing: `Set ${sanitiseLine(pairs.join(' '))} on`,
    change: async (call, node_id) => {
      for (const { key, value } of tags) await call(putTag, { params: { node_id, key }, body: { value } });
    },
  });
}

export async function untag(context: Context, words: string[], options: ManyOptions): Promise<Exit> {
  const typed = options.selector === undefined ? words.slice(0, 1) : [];
  const keys = words.slice(typed.length);
  if (keys.length === 0)
    throw usageError('no tag key was specified', 'Specify agents, then keys: muster agents untag web-1 site');
  return await retag(context, typed, options, {
    doing: `Remove ${sanitiseLine(keys.join(' '))} from`,
    change: async (call, node_id) => {
      for (const key of keys) await call(deleteTag, { params: { node_id, key } });
    },
  });
}
