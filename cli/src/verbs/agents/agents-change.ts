import { isName } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { type Agent, deleteTag, listAgents, putTag, putTags, removeAgent, setAgentStatus } from '@muster/protocol/http';
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
import { agentLabel } from '../../text/agent-label.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { parseTag } from '../../text/values.ts';

/** How many agents are changed at one time. */
const atOnce = 8;

interface ManyOptions extends AgentOptions {
  yes?: boolean;
}

/** The verbs of `muster agents` that change what is known of agents. */
export function registerChanges(command: Command, act: Act): void {
  const many = (name: string, description: string) =>
    command
      .command(name)
      .description(description)
      .argument('[agents...]', severalNaming)
      .addOption(selectorOption())
      .option('-y, --yes', 'do not ask');
  many('approve', 'let agents in; the first time, each gets its name for good')
    .option('--all-pending', 'every agent that waits for approval')
    .option('--name <name>', 'the name, of one agent; on a terminal it is asked for, with the hostname proposed')
    .option('--hostnames', 'name each after the hostname it says it has')
    .addHelpText(
      'after',
      '\nWithout names, a selector picks among the agents that wait for approval.\n\nExamples:\n  $ muster agents approve 3f8c2b --name web-1\n  $ muster agents approve --all-pending --hostnames\n  $ muster agents approve -l attr.distro=debian --hostnames --yes',
    )
    .action(act(approve));
  many('reject', 'keep agents out: their links are closed, their running work is cancelled')
    .addHelpText('after', '\nExamples:\n  $ muster agents reject web-1\n  $ muster agents reject -l site=paris')
    .action(act(reject));
  many('remove', 'forget rejected agents')
    .addHelpText(
      'after',
      '\nWithout names, a selector picks among the rejected.\n\nExample:\n  $ muster agents remove web-1 --yes',
    )
    .action(act(remove));
  command
    .command('tag')
    .description('set tags of agents')
    .argument('[words...]', `agents, then key=value. An agent: ${agentNaming}`)
    .addOption(selectorOption())
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster agents tag web-1 role=web site=paris\n  $ muster agents tag web-1 web-2 site=paris\n  $ muster agents tag -l attr.distro=debian os=debian',
    )
    .action(act(tag));
  command
    .command('untag')
    .description('take tags of agents away')
    .argument(
      '[words...]',
      `agents with commas between them, then keys; with --selector keys alone. An agent: ${agentNaming}`,
    )
    .addOption(selectorOption())
    .option('-y, --yes', 'do not ask')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster agents untag web-1 site\n  $ muster agents untag web-1,web-2 role site\n  $ muster agents untag -l site=paris site',
    )
    .action(act(untag));
}

/** What of a hostname can be a name: its first label, if that is one. */
function proposedName({ attributes, initial_hostname }: Agent): string {
  const [label = ''] = (attributes.hostname ?? initial_hostname).split('.');
  return isName(label) ? label : '';
}

const nameFault = (name: string): string | undefined =>
  isName(name) ? undefined : 'Up to 64 letters, digits, - and _, the first a letter.';

/** @throws CliError (usage) for what cannot be a name */
export function requireName(name: string): void {
  const fault = nameFault(name);
  if (fault !== undefined) throw usageError(`${JSON.stringify(name)} is not a name`, fault);
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
  if (name !== undefined && hostnames) throw usageError('--name and --hostnames say different things');
  const choice = { ...options, all: allPending };
  const agents = await chooseAgents(context, typed, choice, { status: 'pending' });
  if (name !== undefined && agents.length > 1)
    throw usageError(`one name is not for ${agents.length} agents`, 'Name each after its hostname: --hostnames');
  // Whoever is asked for each name need not be asked whether.
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
    out.warn(`${sanitiseLine(agentLabel(agent))} trusted the key of the orchestrator unseen, at its first connection`);
  const name = agent.name === null ? (given ?? (await nameFor(context, agent, hostnames))) : given;
  const approved = await call(setAgentStatus, {
    params: { node_id: agent.node_id },
    body: { status: 'approved', ...(name === undefined ? {} : { name }) },
  });
  out.print(`Approved ${out.style.color.bold(sanitiseLine(agentLabel(approved)))} (${approved.node_id}).`);
  if (agent.status === 'rejected')
    out.note(`It asks again within ${limits.rejectedRetryAfterSecs / 60} minutes; restart the agent to hurry.`);
  return approved;
}

/** The name of an agent that has none: its hostname, or what a person says. */
async function nameFor({ out, prompt }: Context, agent: Agent, hostnames: boolean): Promise<string> {
  const proposed = proposedName(agent);
  if (hostnames) {
    if (proposed !== '') return proposed;
    const hostname = JSON.stringify(agent.attributes.hostname ?? agent.initial_hostname);
    throw new CliError(
      exits.failed,
      'name_required',
      `its hostname ${hostname} cannot be a name`,
      `Name it: muster agents approve ${agent.node_id} --name NAME`,
    );
  }
  if (!prompt.interactive || out.json)
    throw usageError('the agent needs a name', `For example: muster agents approve ${agent.node_id} --name NAME`);
  out.note(
    `Agent ${agent.node_id}\n  says it is ${sanitiseLine(agent.initial_hostname)}, from ${sanitiseLine(agent.initial_ip)}`,
  );
  return await prompt.ask('Its name, for good:', proposed, nameFault);
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
  await agreeTo(context, agents, { doing: 'Forget', after: ' for good', always: true, ...options });
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

/** Gives each the tags that are named, and takes all others away. */
export async function replaceTags(context: Context, words: string[], options: ManyOptions): Promise<Exit> {
  const { typed, pairs } = splitWords(words);
  const tags = Object.fromEntries(pairs.map(parseTag).map(({ key, value }) => [key, value]));
  const said = pairs.length === 0 ? 'no tags' : sanitiseLine(pairs.join(' '));
  return await retag(context, typed, options, {
    doing: `Leave ${said}, and take every other tag away, on`,
    always: true,
    change: async (call, node_id) => void (await call(putTags, { params: { node_id }, body: { tags } })),
  });
}

/** Agents, then tags: the name of an agent has no equals sign. */
function splitWords(words: readonly string[]): { typed: string[]; pairs: string[] } {
  const first = words.findIndex((word) => word.includes('='));
  return { typed: words.slice(0, first < 0 ? undefined : first), pairs: first < 0 ? [] : words.slice(first) };
}

/** Changes the tags of each and tells what they are then. */
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
  // What they are now, with one request.
  const now =
    agents.length === 1 && only
      ? [await chooseAgent(call, only.node_id)]
      : await call(listAgents, { query: { sort: 'name' } });
  const told = now
    .filter(({ node_id }) => changed.has(node_id))
    .map(({ node_id, name, tags }) => ({ node_id, name, tags }));
  if (out.json) out.data(isOneNamed(typed, agents) ? { node_id: told[0]?.node_id, tags: told[0]?.tags } : told);
  for (const agent of told) {
    const pairs = Object.entries(agent.tags).map(([key, value]) => `${key}=${value}`);
    out.print(`${sanitiseLine(agentLabel(agent))}: ${pairs.length === 0 ? 'no tags' : sanitiseLine(pairs.join(' '))}`);
  }
  return exit;
}

export async function tag(context: Context, words: string[], options: ManyOptions): Promise<Exit> {
  const { typed, pairs } = splitWords(words);
  const tags = pairs.map(parseTag);
  if (tags.length === 0) throw usageError('no tag was named', 'Tags are written key=value, e.g. role=web.');
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
  if (keys.length === 0) throw usageError('no tag was named', 'For example: muster agents untag web-1 site');
  return await retag(context, typed, options, {
    doing: `Take ${sanitiseLine(keys.join(' '))} from`,
    change: async (call, node_id) => {
      for (const key of keys) await call(deleteTag, { params: { node_id, key } });
    },
  });
}
