import { isName } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import {
  type Agent,
  agentStatuses,
  createEnrolmentToken,
  deleteTag,
  listAgents,
  putTag,
  removeAgent,
  setAgentStatus,
} from '@muster/protocol/http';
import { limits } from '@muster/protocol/wire';
import type { Context } from '../context.ts';
import { eachOf } from '../each.ts';
import { CliError, type Exit, exits, usageError } from '../exit.ts';
import { agentLabel, findAgent, findAgents } from '../find-agent.ts';
import { sanitiseLine } from '../sanitise.ts';
import { ago, counted, duration } from '../style.ts';
import type { Column } from '../table.ts';
import { parseChoice, parseCount, parseDuration, parseTag } from '../values.ts';
import type { Register } from '../verb.ts';

const naming = '\nAn agent is named by its name, its node id, or the beginning of either if only one agent fits.\n';

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('list agents')
    .option('--status <status>', 'pending, approved or rejected only')
    .option('--filter <selector>', 'those a selector matches, e.g. "role=web site in (paris,rome)"')
    .option('-q, --query <text>', 'those with this text in their name or hostname')
    .addHelpText('after', '\nExample:\n  $ muster agents list --status pending')
    .action(act(list));
  command
    .command('show')
    .description('show an agent with its tags and what it says of its machine')
    .argument('<agent>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster agents show web-1`)
    .action(act(show));
  command
    .command('approve')
    .description('let an agent in; the first time, it gets its name for good')
    .argument('<agent>')
    .option('--name <name>', 'the name; on a terminal it is asked for, with the hostname proposed')
    .addHelpText('after', `${naming}\nExample:\n  $ muster agents approve 3f8c2b --name web-1`)
    .action(act(approve));
  command
    .command('reject')
    .description('keep agents out: their links are closed, their running work is cancelled')
    .argument('<agents...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster agents reject web-1`)
    .action(act(reject));
  command
    .command('remove')
    .description('forget rejected agents')
    .argument('<agents...>')
    .option('-y, --yes', 'do not ask')
    .addHelpText('after', `${naming}\nExample:\n  $ muster agents remove web-1 --yes`)
    .action(act(remove));
  command
    .command('tag')
    .description('set tags of an agent')
    .argument('<agent>')
    .argument('<key=value...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster agents tag web-1 role=web site=paris`)
    .action(act(tag));
  command
    .command('untag')
    .description('take tags of an agent away')
    .argument('<agent>')
    .argument('<keys...>')
    .addHelpText('after', `${naming}\nExample:\n  $ muster agents untag web-1 site`)
    .action(act(untag));
  command
    .command('enroll')
    .description('make a token that lets an agent enrol, and print the command to paste on its machine')
    .option('--name <name>', 'the name it gets; for a token of one use')
    .option('--tag <key=value>', 'a tag it gets; may be repeated', (text: string, tags: string[] | undefined) => [
      ...(tags ?? []),
      text,
    ])
    .option('--expires <duration>', 'how long the token is good, e.g. 30m, 12h, 7d', '1h')
    .option('--uses <n>', 'how many agents may use it', '1')
    .option('--no-approve', 'they wait for approval')
    .addHelpText('after', '\nExample:\n  $ muster agents enroll --name web-2 --tag role=web')
    .action(act(enroll));
};

const shortId = 12;

const columns = (idLength: number): Column<Agent>[] => [
  { heading: 'NAME', text: ({ name }) => name, flexible: true, paint: (text, _, { color }) => color.bold(text) },
  { heading: 'NODE ID', extra: true, text: ({ node_id }) => node_id.slice(0, idLength) },
  {
    heading: 'STATUS',
    text: ({ status }) => status,
    paint: (text, { status }, { color }) =>
      status === 'pending' ? color.yellow(text) : status === 'rejected' ? color.red(text) : text,
  },
];

async function list(
  context: Context,
  options: { status?: string; filter?: string; query?: string },
): Promise<undefined> {
  const { out } = context;
  const { style } = out;
  const { status, filter, query } = options;
  const state = status === undefined ? undefined : parseChoice('--status', status, agentStatuses);
  const { call } = await context.connect();
  const progress = out.progress('reading the agents');
  const agents = await call(listAgents, {
    query: {
      sort: 'name',
      ...(state === undefined ? {} : { status: state }),
      ...(filter === undefined ? {} : { filter }),
      ...(query === undefined ? {} : { q: query }),
    },
  }).finally(progress.end);
  if (out.json) {
    out.data(agents);
    return undefined;
  }
  if (agents.length === 0) {
    out.note(
      status === undefined && filter === undefined && query === undefined
        ? 'There is no agent yet. Let one in: muster agents enroll'
        : 'No agent fits.',
    );
    return undefined;
  }
  out.table(
    [
      ...columns(style.width === null ? 32 : shortId),
      {
        heading: 'LINK',
        text: ({ connected, last_seen_at }) => (connected ? 'up' : `lost ${ago(last_seen_at, style.now)}`),
        paint: (text, { connected }, { color }) => (connected ? color.green(text) : color.red(text)),
      },
      {
        heading: 'HOSTNAME',
        extra: true,
        text: ({ attributes, initial_hostname }) => attributes.hostname ?? initial_hostname,
        flexible: true,
      },
      {
        heading: 'SYSTEM',
        extra: true,
        text: ({ attributes: { distro, platform, version } }) =>
          [distro ?? platform, version].filter(Boolean).join(' ') || null,
        flexible: true,
      },
      {
        heading: 'TAGS',
        text: ({ tags }) =>
          Object.entries(tags)
            .map(([key, value]) => `${key}=${value}`)
            .join(' ') || null,
        flexible: true,
      },
    ],
    agents,
  );
  const pending = agents.filter((agent) => agent.status === 'pending').length;
  if (pending > 0)
    out.note(
      `\n${counted(pending, 'agent waits', 'agents wait')} for approval: muster agents approve NODE_ID --name NAME`,
    );
  return undefined;
}

async function show(context: Context, wanted: string): Promise<undefined> {
  const { out } = context;
  const { color, now } = out.style;
  const { call } = await context.connect();
  const agent = await findAgent(call, wanted);
  if (out.json) {
    out.data(agent);
    return undefined;
  }
  const { attributes, tags, connected } = agent;
  const link = connected ? `up for ${duration(now - agent.connected_at)}` : `lost ${ago(agent.last_seen_at, now)}`;
  const unseen = agent.pin_source === 'first_use' ? '; it trusted the key of the orchestrator unseen' : '';
  const lines = (entries: Record<string, string>): string[] => {
    const names = Object.keys(entries).sort();
    const width = Math.max(...names.map((name) => sanitiseLine(name).length));
    return names.map((name) => `  ${sanitiseLine(name).padEnd(width)}  ${sanitiseLine(entries[name] ?? '')}`);
  };
  const section = (title: string, entries: Record<string, string>, none: string): string[] => [
    '',
    color.bold(title),
    ...(Object.keys(entries).length === 0 ? [`  ${none}`] : lines(entries)),
  ];
  out.print(
    [
      `${color.bold(sanitiseLine(agentLabel(agent)))}  ${agent.status}`,
      `node id  ${agent.node_id}`,
      `link     ${connected ? color.green(link) : color.red(link)}${unseen}`,
      `agent    ${sanitiseLine(agent.agent_version)}, first seen as ${sanitiseLine(agent.initial_hostname)} from ${sanitiseLine(agent.initial_ip)}`,
      ...section('Tags', tags, 'none'),
      ...section('Attributes: modules read them as attr.NAME', attributes, 'none'),
    ].join('\n'),
  );
  return undefined;
}

/** What of a hostname can be a name: its first label, if that is one. */
function proposedName({ attributes, initial_hostname }: Agent): string {
  const [label = ''] = (attributes.hostname ?? initial_hostname).split('.');
  return isName(label) ? label : '';
}

const nameFault = (name: string): string | undefined =>
  isName(name) ? undefined : 'Up to 64 letters, digits, - and _, the first a letter.';

async function approve(context: Context, wanted: string, options: { name?: string }): Promise<undefined> {
  const { out, prompt } = context;
  const { call } = await context.connect();
  const agent = await findAgent(call, wanted);
  let { name } = options;
  if (name !== undefined && nameFault(name)) throw usageError(`${JSON.stringify(name)} is not a name`, nameFault(name));
  if (agent.status !== 'approved' && agent.pin_source === 'first_use')
    out.warn('it trusted the key of the orchestrator unseen, at its first connection');
  if (agent.name === null && name === undefined) {
    if (!prompt.interactive || out.json)
      throw usageError('the agent needs a name', `For example: muster agents approve ${agent.node_id} --name NAME`);
    out.note(
      `Agent ${agent.node_id}\n  says it is ${sanitiseLine(agent.initial_hostname)}, from ${sanitiseLine(agent.initial_ip)}`,
    );
    name = await prompt.ask('Its name, for good:', proposedName(agent), nameFault);
  }
  const approved = await call(setAgentStatus, {
    params: { node_id: agent.node_id },
    body: { status: 'approved', ...(name === undefined ? {} : { name }) },
  });
  if (out.json) out.data(approved);
  out.print(`Approved ${out.style.color.bold(sanitiseLine(agentLabel(approved)))} (${approved.node_id}).`);
  if (agent.status === 'rejected')
    out.note(`It asks again within ${limits.rejectedRetryAfterSecs / 60} minutes; restart the agent to hurry.`);
  return undefined;
}

async function reject(context: Context, wanted: string[]): Promise<Exit> {
  const { out } = context;
  const { call } = await context.connect();
  const agents = await findAgents(call, wanted);
  const rejected: Agent[] = [];
  const exit = await eachOf(context, agents, agentLabel, async (agent) => {
    rejected.push(await call(setAgentStatus, { params: { node_id: agent.node_id }, body: { status: 'rejected' } }));
    out.print(`Rejected ${sanitiseLine(agentLabel(agent))}.`);
  });
  if (out.json) out.data(rejected);
  return exit;
}

async function remove(context: Context, wanted: string[], options: { yes?: boolean }): Promise<Exit> {
  const { out, prompt } = context;
  const { call } = await context.connect();
  const agents = await findAgents(call, wanted);
  if (!options.yes) {
    const names = sanitiseLine(agents.map(agentLabel).join(', '));
    if (!prompt.interactive) throw usageError(`${names} would be forgotten for good`, 'Say that you mean it: --yes');
    if (!(await prompt.confirm(`Forget ${names} for good?`)))
      throw new CliError(exits.failed, 'cancelled', 'cancelled; nothing was changed');
  }
  const removed: string[] = [];
  const exit = await eachOf(context, agents, agentLabel, async (agent) => {
    await call(removeAgent, { params: { node_id: agent.node_id } });
    removed.push(agent.node_id);
    out.print(`Removed ${sanitiseLine(agentLabel(agent))}.`);
  });
  if (out.json) out.data({ removed });
  return exit;
}

async function afterwards(context: Context, call: Client, agent: Agent): Promise<undefined> {
  const { out } = context;
  const { tags } = await findAgent(call, agent.node_id);
  if (out.json) out.data({ node_id: agent.node_id, tags });
  const told = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
  out.print(`${sanitiseLine(agentLabel(agent))}: ${told.length === 0 ? 'no tags' : sanitiseLine(told.join(' '))}`);
  return undefined;
}

async function tag(context: Context, wanted: string, pairs: string[]): Promise<undefined> {
  const tags = pairs.map(parseTag);
  const { call } = await context.connect();
  const agent = await findAgent(call, wanted);
  for (const { key, value } of tags) await call(putTag, { params: { node_id: agent.node_id, key }, body: { value } });
  return afterwards(context, call, agent);
}

async function untag(context: Context, wanted: string, keys: string[]): Promise<undefined> {
  const { call } = await context.connect();
  const agent = await findAgent(call, wanted);
  for (const key of keys) await call(deleteTag, { params: { node_id: agent.node_id, key } });
  return afterwards(context, call, agent);
}

async function enroll(
  context: Context,
  options: { name?: string; tag?: string[]; expires: string; uses: string; approve: boolean },
): Promise<undefined> {
  const { out, now } = context;
  const { name } = options;
  const uses = parseCount('--uses', options.uses, 1, 10_000);
  if (name !== undefined && nameFault(name)) throw usageError(`${JSON.stringify(name)} is not a name`, nameFault(name));
  const tags = Object.fromEntries((options.tag ?? []).map(parseTag).map(({ key, value }) => [key, value]));
  const expiresIn = parseDuration(options.expires);
  const { call } = await context.connect();
  const made = await call(createEnrolmentToken, {
    body: {
      expires_in: expiresIn,
      uses,
      approve: options.approve,
      ...(name === undefined ? {} : { name }),
      ...(options.tag === undefined ? {} : { tags }),
    },
  });
  if (out.json) out.data(made);
  out.print(sanitiseLine(made.command));
  out.note(
    `\nPaste it on the machine, as root. Good for ${duration(made.expires_at - now())}, ${counted(made.uses_left, 'use')}; the token is not shown again.\nIn a clone of Muster’s repository, after npm ci, type it with npx in front: npx muster agent connect …`,
  );
  return undefined;
}
