import { ApiError, type Client } from '@muster/protocol/client';
import {
  type Agent,
  agentSorts,
  agentStatuses,
  createEnrolmentToken,
  getAttributes,
  listAgents,
  listReconcile,
  matchSelector,
  type OffAgent,
} from '@muster/protocol/http';
import { syncStateOf } from '@muster/protocol/sync-state';
import { type Command, Option } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import {
  type AgentOptions,
  chooseAgents,
  isOneNamed,
  selectorOption,
  severalNaming,
} from '../../execution/choose-agents.ts';
import { showingFault } from '../../execution/selector-fault.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { CliError, exits, usageError } from '../../exit.ts';
import { agentLabel, byLabel, connectionColumn, tagTexts } from '../../text/agent-label.ts';
import { offLine, revisionsLine, syncWord } from '../../text/reconcile-text.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, counted, duration, type Style } from '../../text/style.ts';
import type { Column } from '../../text/table.ts';
import { parseChoice, parseCount, parseMoment, parseTag } from '../../text/values.ts';
import { registerChanges, requireName } from './agents-change.ts';
import { registerValues } from './values.ts';

/** Statuses of agents and of the connections of approved agents. */
const listedStatuses = [...agentStatuses, 'connected', 'offline'] as const;
const syncWords = ['in-sync', 'out-of-sync', 'outdated', 'accepted', 'never-applied'] as const;

export const register: Register = (command, act) => {
  command
    .command('list')
    .description('List agents')
    .addOption(new Option('--status <status>', 'Agents with this status').choices(listedStatuses))
    .addOption(new Option('--sync <state>', 'Agents with this sync state').choices(syncWords))
    .addOption(selectorOption())
    .addOption(new Option('--filter <selector>', 'Same as --selector').hideHelp())
    .option('-q, --query <text>', 'Agents with this text in their name or hostname')
    .addOption(new Option('--sort <key>', 'Sort key').choices(agentSorts).default('name'))
    .option('--limit <n>', 'Maximum number; all by default')
    .addOption(watchOption())
    .addHelpText(
      'after',
      `\nStatuses: ${listedStatuses.join(', ')}.\n\nSync states: ${syncWords.join(', ')}.\n\nSort keys: ${agentSorts.join(', ')}.\n\nExamples:\n  $ muster agents list --status pending\n  $ muster agents list --status offline\n  $ muster agents list --sync outdated -l role=web`,
    )
    .action(act(list));
  command
    .command('show')
    .description('Show agents with their tags and attributes')
    .argument('[agents...]', severalNaming)
    .addOption(selectorOption())
    .addHelpText('after', '\nExamples:\n  $ muster agents show web-1\n  $ muster agents show -l role=web')
    .action(act(show));
  command
    .command('attributes')
    .description('Show the attributes of agents; selectors and modules read them as attr.NAME')
    .argument('[agents...]', severalNaming)
    .addOption(selectorOption())
    .addHelpText('after', '\nExample:\n  $ muster agents attributes web-1')
    .action(act(attributes));
  registerValues(command, act);
  registerChanges(command, act);
  withTokenTerms(command.command('enroll').description('Print a command that adds a machine'))
    .addHelpText('after', '\nExample:\n  $ muster agents enroll --name web-2 --tag role=web')
    .action(act(enroll));
};

/** Adds the options that describe a new enrollment token. */
export const withTokenTerms = (command: Command): Command =>
  command
    .option('--name <name>', 'Name of the agent; only for a token with one use')
    .option('--tag <key=value>', 'A tag of the agent; may be repeated', (text: string, tags: string[] | undefined) => [
      ...(tags ?? []),
      text,
    ])
    .option('--expires <when>', 'Expiry, such as 30m, 12h, 7d, or 2026-12-01', '1h')
    .option('--uses <n>', 'Maximum number of agents', '1')
    .option('--no-approve', 'Leave the agents pending until they are approved');

const shortId = 12;

type OffByNode = ReadonlyMap<string, OffAgent>;

/**
 * Returns the agents that are out of sync or outdated, or whose drift was accepted.
 * @param only the agents to request; all if it is empty
 * @returns null if the orchestrator is an earlier release, which does not support the parameter
 */
async function readOff(call: Client, only: { agent?: string; filter?: string }): Promise<OffByNode | null> {
  const query = { include_accepted: 'true', include_outdated: 'true', limit: '500', ...only } as const;
  try {
    const off = await call(listReconcile, { query, all: true });
    return new Map(off.map((each) => [each.node_id, each]));
  } catch (error) {
    if (error instanceof ApiError && error.problem.code === 'invalid_input') return null;
    throw error;
  }
}

/** Returns the node IDs of the agents without a successful apply; null if the orchestrator is an earlier release. */
async function readNeverApplied(call: Client, selector = ''): Promise<ReadonlySet<string> | null> {
  try {
    const { matches } = await call(matchSelector, { body: { selector, never_applied: true } });
    return new Set(matches);
  } catch (error) {
    if (error instanceof ApiError && error.problem.code === 'invalid_input') return null;
    throw error;
  }
}

/** Hides the column on a terminal if all agents are approved, because every row would be the same. */
const hidesStatus = (style: Style, agents: readonly Agent[]): boolean =>
  style.width !== null && !style.verbose && agents.every(({ status }) => status === 'approved');

const hostnameOf = ({ attributes, initial_hostname }: Agent): string => attributes.hostname ?? initial_hostname;

/**
 * Hides the column on a terminal if each hostname begins with its agent's name, because the column would repeat the
 * names.
 */
const hidesHostname = (style: Style, agents: readonly Agent[]): boolean =>
  style.width !== null &&
  !style.verbose &&
  agents.every((agent) => agent.name !== null && hostnameOf(agent).startsWith(agent.name));

const columns = (style: Style, agents: readonly Agent[], sync: SyncOfAgents | null): Column<Agent>[] => [
  {
    heading: 'NAME',
    // A pending agent has no name yet and can be approved by its ID.
    text: (agent) => (style.width === null ? agent.name : agentLabel(agent)),
    flexible: true,
    // Operators must type the name, so the other columns are truncated first.
    wants: 32,
    paint: (text, _, { color }) => color.bold(text),
  },
  ...(hidesStatus(style, agents) ? [] : [statusColumn]),
  connectionColumn(style),
  ...(sync === null ? [] : [syncColumn(sync)]),
  ...(hidesHostname(style, agents)
    ? []
    : [{ heading: 'HOSTNAME', extra: true, text: hostnameOf, flexible: true } satisfies Column<Agent>]),
  {
    heading: 'SYSTEM',
    extra: true,
    text: ({ attributes: { distro, platform, version } }) =>
      [distro ?? platform, version].filter(Boolean).join(' ') || null,
    flexible: true,
  },
  { heading: 'TAGS', text: ({ tags }) => tagTexts(tags).join(' ') || null, flexible: true },
  {
    heading: 'NODE ID',
    extra: true,
    text: ({ node_id }) => (style.width === null ? node_id : node_id.slice(0, shortId)),
  },
];

const statusColumn: Column<Agent> = {
  heading: 'STATUS',
  text: ({ status }) => status,
  paint: (text, { status }, { color }) =>
    status === 'pending' ? color.yellow(text) : status === 'rejected' ? color.red(text) : text,
};

interface SyncOfAgents {
  readonly off: OffByNode;
  /** Null if the orchestrator is an earlier release. */
  readonly neverApplied: ReadonlySet<string> | null;
}

/** Returns the sync state of an agent as words; null if the agent has none, or it is not known. */
function syncOf({ node_id, status }: Agent, { off, neverApplied }: SyncOfAgents): string | null {
  const entry = off.get(node_id);
  if (entry === undefined && (status !== 'approved' || neverApplied === null)) return null;
  return syncStateOf(entry ?? null, neverApplied?.has(node_id) !== true).replaceAll('_', ' ');
}

const syncColumn = (sync: SyncOfAgents): Column<Agent> => ({
  heading: 'SYNC',
  text: (agent) => syncOf(agent, sync),
  paint: (text, { node_id }, { color }) => (syncWord(sync.off.get(node_id)) === null ? text : color.yellow(text)),
});

interface ListOptions {
  status?: string;
  sync?: string;
  selector?: string;
  filter?: string;
  query?: string;
  sort: string;
  limit?: string;
}

/** Returns the filters that the API has, and a predicate for those that it does not have. */
function filtersOf(options: ListOptions) {
  const { query, selector: filter = options.filter } = options;
  const status = options.status === undefined ? undefined : parseChoice('--status', options.status, listedStatuses);
  const word = options.sync === undefined ? undefined : parseChoice('--sync', options.sync, syncWords);
  const linked = status === 'connected' || status === 'offline';
  const known = linked || word !== undefined ? 'approved' : status;
  if (word !== undefined && (status === 'pending' || status === 'rejected'))
    throw usageError(`--sync cannot be combined with --status ${status}`, 'Only approved agents have a sync state.');
  return {
    word,
    selected: filter === undefined ? {} : { filter },
    isFiltered: status !== undefined || word !== undefined || filter !== undefined || query !== undefined,
    /** Whether the API applies all filters, and with them the limit. */
    isWhole: !linked && word === undefined,
    sent: { ...(known === undefined ? {} : { status: known }), ...(query === undefined ? {} : { q: query }) },
    fits: (agent: Agent, sync: SyncOfAgents | null): boolean =>
      (!linked || agent.connected === (status === 'connected')) &&
      (word === undefined || (sync !== null && syncOf(agent, sync)?.replaceAll(' ', '-') === word)),
  };
}

async function list(context: Context, options: ListOptions): Promise<undefined> {
  const { out } = context;
  const { style } = out;
  const { word, selected, isFiltered, isWhole, sent, fits } = filtersOf(options);
  const sort = parseChoice('--sort', options.sort, agentSorts);
  const limit = options.limit === undefined ? undefined : parseCount('--limit', options.limit, 1, 100_000);
  const { call } = await context.connect();
  const progress = out.progress('reading the agents');
  const [off, listed] = await Promise.all([
    out.json && word === undefined ? null : readOff(call, selected),
    // Requests one agent more than the limit, to find out whether there are more.
    call(listAgents, {
      query: {
        sort,
        ...selected,
        ...sent,
        ...(limit === undefined || !isWhole ? {} : { limit: String(limit + 1) }),
      },
      ...(limit === undefined || !isWhole ? {} : { atMost: limit + 1 }),
    }),
  ])
    .catch(showingFault(selected.filter ?? ''))
    .finally(progress.end);
  const isListed = word !== undefined || listed.some(({ node_id }) => syncWord(off?.get(node_id)) !== null);
  const sync = off === null || !isListed ? null : { off, neverApplied: await readNeverApplied(call, selected.filter) };
  if (word !== undefined && (sync === null || sync.neverApplied === null))
    throw new CliError(
      exits.failed,
      'sync_unknown',
      'this orchestrator is an earlier release, which cannot filter by sync',
      'Update the orchestrator, or omit --sync.',
    );
  const found = listed.filter((agent) => fits(agent, sync));
  const agents = limit === undefined ? found : found.slice(0, limit);
  if (out.json) return out.data(agents);
  if (agents.length === 0)
    return out.note(isFiltered ? 'No agent matches.' : 'There are no agents yet. Enroll one: muster agents enroll');
  const ordered = limit === undefined && sort === 'name' ? agents.toSorted(byLabel) : agents;
  out.table(columns(style, agents, sync), ordered);
  if (found.length > agents.length) out.note('\nThere are more agents: raise --limit, or omit it to list all');
  const pending = agents.filter((agent) => agent.status === 'pending');
  const [first] = pending;
  if (first !== undefined)
    out.note(
      `\n${counted(pending.length, 'agent waits', 'agents wait')} for approval: muster agents approve ${pending.length === 1 ? sanitiseLine(agentLabel(first)) : 'AGENT'}`,
    );
}

async function attributes(context: Context, typed: string[], options: AgentOptions): Promise<undefined> {
  const { out } = context;
  const { color } = out.style;
  const agents = await chooseAgents(context, typed, options, { status: 'any' });
  const { call } = await context.connect();
  const [only] = agents;
  // The list already contains the attributes.
  const found = new Map(agents.map((agent) => [agent.node_id, agent.attributes]));
  if (only !== undefined && agents.length === 1)
    found.set(only.node_id, await call(getAttributes, { params: { node_id: only.node_id } }));
  if (out.json)
    return out.data(isOneNamed(typed, agents) && only ? found.get(only.node_id) : Object.fromEntries(found));
  for (const [at, agent] of agents.entries()) {
    if (agents.length > 1) out.print(`${at === 0 ? '' : '\n'}${color.bold(sanitiseLine(agentLabel(agent)))}`);
    const rows = Object.entries(found.get(agent.node_id) ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
    if (rows.length === 0) out.note(`${sanitiseLine(agentLabel(agent))} has not reported attributes yet.`);
    else
      out.table(
        [
          { heading: 'ATTRIBUTE', text: ([name]) => name },
          { heading: 'VALUE', text: ([, value]) => value, flexible: true },
        ],
        rows,
      );
  }
}

async function show(context: Context, typed: string[], options: AgentOptions): Promise<undefined> {
  const { out } = context;
  const agents = await chooseAgents(context, typed, options, { status: 'any' });
  if (out.json) return out.data(isOneNamed(typed, agents) ? agents[0] : agents);
  const { call } = await context.connect();
  const [only] = agents;
  const off = await readOff(call, only !== undefined && agents.length === 1 ? { agent: only.node_id } : {});
  out.print(agents.map((agent) => describe(agent, off?.get(agent.node_id), out.style)).join('\n\n'));
}

/** Returns lines that explain why the agent is out of sync or outdated; none if no difference is known. */
function syncLines(off: OffAgent | undefined, { color }: Pick<Style, 'color'>): string[] {
  const word = syncWord(off);
  if (off === undefined || word === null) return [];
  const line = sanitiseLine(offLine(off));
  return [
    `sync        ${color.yellow(word === 'outdated' ? line : `${word}: ${line}`)}`,
    ...(off.outdated === undefined ? [] : [`            ${sanitiseLine(revisionsLine(off.outdated))}`]),
  ];
}

function describe(agent: Agent, off: OffAgent | undefined, { color, now }: Style): string {
  const { attributes, tags, connected } = agent;
  const connection = connected
    ? `connected for ${duration(now - agent.connected_at)}`
    : `offline, last seen ${ago(agent.last_seen_at, now)}`;
  const unseen = agent.pin_source === 'first_use' ? '; it accepted the orchestrator’s key unverified' : '';
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
  return [
    `${color.bold(sanitiseLine(agentLabel(agent)))}  ${agent.status}`,
    `node id     ${sanitiseLine(agent.node_id)}`,
    `connection  ${connected ? color.green(connection) : color.red(connection)}${unseen}`,
    ...syncLines(off, { color }),
    `agent       ${sanitiseLine(agent.agent_version)}, first seen as ${sanitiseLine(agent.initial_hostname)} from ${sanitiseLine(agent.initial_ip)}`,
    ...section('Tags', tags, 'none'),
    ...section('Attributes: modules read them as attr.NAME', attributes, 'none'),
  ].join('\n');
}

/** Creates an enrollment token and prints the command that installs an agent. */
export async function enroll(
  context: Context,
  options: { name?: string; tag?: string[]; expires: string; uses: string; approve: boolean },
): Promise<undefined> {
  const { out, now } = context;
  const { name } = options;
  const uses = parseCount('--uses', options.uses, 1, 10_000);
  if (name !== undefined) requireName(name);
  const tags = Object.fromEntries((options.tag ?? []).map(parseTag).map(({ key, value }) => [key, value]));
  const expiresIn = parseMoment(options.expires, now(), 'until') - Math.floor(now());
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
  const good = `Valid for ${duration(Math.ceil((made.expires_at - now()) / 60) * 60)}, ${counted(made.uses_left, 'use')}; the token is not shown again.`;
  if (made.command === made.connect_command)
    out.note(
      `\nRun it as root on the machine, which must have the program installed. ${good}\nIn a clone of Muster’s repository, after npm ci, prefix it with npx: npx muster agent connect …`,
    );
  else
    out.note(
      `\nRun it on the machine, as root or with sudo: it installs and connects the agent. ${good}\nIf the program is already installed:\n  ${sanitiseLine(made.connect_command)}`,
    );
  if (made.note !== null) out.warn(sanitiseLine(`${made.note.charAt(0).toLowerCase()}${made.note.slice(1)}`));
}
