import type { Client } from '@muster/protocol/client';
import {
  acceptDrift,
  checkDrift,
  type DriftRecord,
  driftStatuses,
  getAssignment,
  getDrift,
  getOperation,
  latestDrift,
  listAssignments,
  listDrift,
  listLatestDrift,
  unacceptDrift,
} from '@muster/protocol/http';
import { Option } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import {
  type AgentOptions,
  chooseAgent,
  chooseAgents,
  selectorOption,
  severalNaming,
} from '../../execution/choose-agents.ts';
import { eachOf } from '../../execution/each.ts';
import { findId } from '../../execution/find-id.ts';
import { applyLine } from '../../execution/operation.ts';
import { removedModules } from '../../execution/removed-modules.ts';
import { showingFault } from '../../execution/selector-fault.ts';
import { watchOption } from '../../execution/watch-option.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { agentLabel, agentNames } from '../../text/agent-label.ts';
import { inBrief, renderDrift, statusPaint, statusWord } from '../../text/drift-text.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { ago, counted } from '../../text/style.ts';
import type { Column } from '../../text/table.ts';
import { parseChoice, parseCount } from '../../text/values.ts';

interface Options extends AgentOptions {
  check?: boolean;
  exitCode?: boolean;
  latest?: boolean;
  history?: boolean;
  record?: string;
  accept?: string;
  unaccept?: boolean;
  filter?: string;
  status?: string;
  limit: string;
  watch?: boolean;
}

export const register: Register = (command, act) => {
  command
    .argument('[agents...]', `${severalNaming}; if omitted, shows the latest check of every agent`)
    .option('--check', 'With --selector or --all: check those machines now')
    .option('--all', 'With --check: every approved agent')
    .option('--latest', 'Show the newest check of an agent; start none')
    .option('--history', 'List the checks of an agent, newest first')
    .option('--record <id>', 'Show this check; --history lists the ids')
    .option('--accept <reason>', 'Accept the drift of an agent or --record')
    .option('--unaccept', 'Withdraw the acceptance')
    .addOption(selectorOption())
    .addOption(new Option('--filter <selector>', 'Same as --selector').hideHelp())
    .option('--status <status>', `In a list: ${driftStatuses.join(', ')}`)
    .option('--limit <n>', 'In a list: maximum number', '50')
    .option('--exit-code', 'Exit with 3 when a machine has drifted')
    .addOption(watchOption())
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster drift web-1\n  $ muster drift web-1 --history --limit 10\n  $ muster drift --status drifted -l role=web\n  $ muster drift -l role=web --check --exit-code\n  $ muster drift web-1 --accept "as the vendor wants it until ticket 4711 is closed"',
    )
    .action(act(drift));
};

async function drift(context: Context, typed: string[], given: Options): Promise<Exit> {
  const { selector = given.filter } = given;
  const options = { ...given, ...(selector === undefined ? {} : { filter: selector }) };
  if (typed.length > 0 && selector !== undefined)
    throw usageError('agent names cannot be combined with --selector', 'Drop the names, or drop --selector.');
  if (options.all && !options.check)
    throw usageError('--all needs --check; without --check, drift lists every agent by default');
  const single = typed.length === 1 && !typed[0]?.includes(',') && typed[0] !== '-';
  const nameOrId = single ? typed[0] : undefined;
  const isRead =
    options.latest || options.history || options.record !== undefined || (typed.length === 0 && !options.check);
  if (options.watch && (!isRead || options.accept !== undefined || options.unaccept))
    throw usageError('--watch starts no checks', 'Add --latest or --history, or omit the agents.');
  if (options.accept !== undefined || options.unaccept) return judge(context, nameOrId, options);
  if (options.check || typed.length > 1 || (typed.length === 1 && !single)) {
    if (options.latest || options.history || options.record !== undefined)
      throw usageError('--latest, --history, and --record work for one agent');
    return await checkSeveral(context, typed, options);
  }
  if (nameOrId === undefined && (options.latest || options.history))
    throw usageError(
      `${options.latest ? '--latest' : '--history'} needs an agent: muster drift AGENT ${options.latest ? '--latest' : '--history'}`,
    );
  if (options.latest && options.history) throw usageError('--latest cannot be combined with --history');
  if (options.record !== undefined) {
    if (nameOrId !== undefined || options.latest || options.history)
      throw usageError(
        '--record cannot be combined with an agent, --latest, or --history',
        'The record already identifies its agent. Omit the agent, --latest, and --history.',
      );
    return recorded(context, options.record, options);
  }
  if (nameOrId === undefined) return listOfAll(context, options);
  const { call } = await context.connect();
  const agent = await chooseAgent(call, nameOrId);
  if (options.history) return history(context, call, agent.node_id, options);
  return options.latest
    ? newest(context, call, agentLabel(agent), agent.node_id, options)
    : checkNow(context, call, agentLabel(agent), agent.node_id, options);
}

/** Accepts the drift from the latest check that found any, or withdraws the acceptance. */
async function judge(context: Context, nameOrId: string | undefined, options: Options): Promise<Exit> {
  const { out } = context;
  const { accept, unaccept, record } = options;
  if (accept !== undefined && unaccept) throw usageError('--accept cannot be combined with --unaccept');
  if (options.check || options.latest || options.history || options.selector !== undefined)
    throw usageError(
      '--accept and --unaccept take one agent or one --record, and no other option',
      'Omit all other options.',
    );
  if ((nameOrId === undefined) === (record === undefined))
    throw usageError(
      '--accept and --unaccept need one agent or one --record',
      'To specify an agent: muster drift AGENT --accept REASON. To specify a check: --record ID',
    );
  const { call } = await context.connect();
  const drift_id = record === undefined ? await newestDrift(call, nameOrId ?? '') : await findCheck(call, record);
  const params = { drift_id };
  const judged =
    accept === undefined
      ? await call(unacceptDrift, { params })
      : await call(acceptDrift, { params, body: { reason: accept } });
  if (out.json) out.data(judged);
  const names = await agentNames(call, new Set([judged.node_id]));
  const name = out.style.color.bold(sanitiseLine(names.get(judged.node_id) ?? judged.node_id));
  if (judged.accepted === null) out.print(`The drift of ${name} is no longer accepted.`);
  else {
    out.print(`The drift of ${name} is accepted: ${counted(judged.resources.length, 'resource')}.`);
    out.note('The acceptance ends when a check finds other drift. An apply still repairs the drift.');
    if (judged.resources.some(({ sensitive }) => sensitive))
      out.note('The drift includes a hidden value: further changes of that value will not be reported.');
  }
  return exits.done;
}

async function newestDrift(call: Client, nameOrId: string): Promise<string> {
  const { node_id, ...agent } = await chooseAgent(call, nameOrId);
  const [newest] = await call(listDrift, { params: { node_id }, query: { status: 'drifted', limit: '1' } });
  if (newest) return newest.drift_id;
  const label = agentLabel({ node_id, ...agent });
  throw new CliError(
    exits.failed,
    'not_drifted',
    `no check of ${label} has found drift`,
    `To check it: muster drift ${label}`,
  );
}

const findCheck = (call: Client, idPart: string): Promise<string> =>
  findId('check', 'muster drift AGENT --history', idPart, async () =>
    (await call(listLatestDrift, { query: { limit: '500' }, atMost: 500 })).map(({ drift_id }) => drift_id),
  );

/** Maximum number of parallel checks. */
const atOnce = 8;

/** Checks several machines now. Prints the drift of each machine, then the totals. */
async function checkSeveral(context: Context, typed: string[], options: Options): Promise<Exit> {
  const { out } = context;
  const agents = await chooseAgents(context, typed, options);
  const { call } = await context.connect();
  const progress = out.progress(`comparing ${agents.length} machines with the applied state`);
  const records: DriftRecord[] = [];
  const exit = await eachOf(
    context,
    agents,
    agentLabel,
    async ({ node_id }) => {
      records.push(await call(checkDrift, { params: { node_id } }));
      progress.update(`compared ${records.length} of ${agents.length} machines with the applied state`);
    },
    atOnce,
  ).finally(progress.end);
  const positions = new Map(agents.map(({ node_id }, at) => [node_id, at]));
  records.sort((one, other) => (positions.get(one.node_id) ?? 0) - (positions.get(other.node_id) ?? 0));
  const of = (status: DriftRecord['status']) => records.filter((record) => record.status === status);
  if (out.json) out.data(records);
  const nameOf = ({ node_id }: DriftRecord) =>
    agentLabel(agents[positions.get(node_id) ?? 0] ?? { name: null, node_id });
  for (const record of records)
    if (record.status !== 'in_sync' || out.verbose) out.print(`${renderDrift(record, nameOf(record), out.style)}\n`);
  const [drifted, same, failed] = [
    of('drifted').length,
    of('in_sync').length,
    agents.length - of('drifted').length - of('in_sync').length,
  ];
  out.print(
    `${out.style.color.bold(`${counted(agents.length, 'machine')}:`)} ${drifted} drifted, ${same} in sync${failed === 0 ? '' : `, ${failed} could not be compared`}`,
  );
  if (exit !== exits.done) return exit;
  if (failed > 0) return failed === agents.length ? exits.failed : exits.partly;
  return exitOf(drifted > 0, options);
}

async function recorded(context: Context, idPart: string, options: Options): Promise<Exit> {
  const { call } = await context.connect();
  const drift_id = await findCheck(call, idPart);
  const record = await call(getDrift, { params: { drift_id } });
  const names = await agentNames(call, new Set([record.node_id]));
  return show(context, call, names.get(record.node_id) ?? record.node_id, record, options);
}

const exitOf = (drifted: boolean, { exitCode }: Options): Exit => (drifted && exitCode ? exits.pending : exits.done);

async function checkNow(
  context: Context,
  call: Client,
  name: string,
  node_id: string,
  options: Options,
): Promise<Exit> {
  const { out } = context;
  const progress = out.progress(`${name}: comparing with the applied state`);
  const record = await call(checkDrift, { params: { node_id } }).finally(progress.end);
  return show(context, call, name, record, options);
}

async function newest(context: Context, call: Client, name: string, node_id: string, options: Options): Promise<Exit> {
  const { out } = context;
  const record = await call(latestDrift, { params: { node_id } });
  if (record !== null) return show(context, call, name, record, options);
  if (out.json) out.data(null);
  else
    out.note(`${sanitiseLine(name)} has never been checked for drift. To check it: muster drift ${sanitiseLine(name)}`);
  return exits.done;
}

async function show(
  { out }: Context,
  call: Client,
  name: string,
  record: DriftRecord,
  options: Options,
): Promise<Exit> {
  if (out.json) out.data(record);
  else out.print(renderDrift(record, name, out.style));
  if (record.status === 'in_sync') return exits.done;
  if (record.status !== 'drifted') return exits.failed;
  if (!out.json && record.trigger !== 'audit')
    out.note(out.noteColor.dim(`\nFix: ${await repairCommand(call, name, record)}`));
  return exitOf(true, options);
}

/**
 * Returns the command line that repairs drift. Includes all modules of the applied operation, because an apply removes
 * the resources of modules that it omits.
 */
async function repairCommand(call: Client, agent: string, record: DriftRecord): Promise<string> {
  const { modules } = await call(getOperation, { params: { operation_id: record.snapshot_operation_id } });
  const assigned = await assignedModules(call, record.node_id, modules);
  const line = applyLine(
    agent,
    modules.filter((name) => !assigned.has(name)),
  );
  const removed = await removedModules(call, modules);
  return removed.length === 0 ? line : `upload ${sanitiseLine(removed.join(', '))} again, then ${line}`;
}

/** Returns the given modules that assignments include in every apply on the agent. */
async function assignedModules(call: Client, node_id: string, modules: readonly string[]): Promise<Set<string>> {
  const enforced = (await call(listAssignments, {})).filter(
    (assignment) => assignment.mode === 'enforce' && assignment.modules.some((name) => modules.includes(name)),
  );
  // With many assignments, prints all modules to avoid the requests.
  if (enforced.length > 8) return new Set();
  const bound = await Promise.all(enforced.map(({ name }) => call(getAssignment, { params: { name } })));
  return new Set(bound.flatMap((each) => (each.matches.includes(node_id) ? each.modules : [])));
}

const queryOf = ({ limit, status }: Options) => ({
  limit: String(parseCount('--limit', limit, 1, 500)),
  ...(status === undefined ? {} : { status: parseChoice('--status', status, driftStatuses) }),
});

const columns = (now: number): Column<DriftRecord>[] => [
  { heading: 'STATUS', text: statusWord, paint: (text, { status }, { color }) => statusPaint(status, color)(text) },
  { heading: 'CHECKED', text: ({ checked_at }) => ago(checked_at, now) },
  { heading: 'TRIGGER', text: ({ trigger }) => trigger },
  { heading: 'CHANGES', text: inBrief, flexible: true },
];

async function history(context: Context, call: Client, node_id: string, options: Options): Promise<Exit> {
  const { out } = context;
  const query = queryOf(options);
  const records = await call(listDrift, { params: { node_id }, query, atMost: Number(query.limit) });
  if (out.json) out.data(records);
  else if (records.length === 0) out.note('No check found.');
  else out.table([{ heading: 'CHECK', text: ({ drift_id }) => drift_id }, ...columns(out.style.now)], records);
  return exitOf(records[0]?.status === 'drifted', options);
}

async function listOfAll(context: Context, options: Options): Promise<Exit> {
  const { out } = context;
  const listQuery = queryOf(options);
  const { call } = await context.connect();
  const query = { ...listQuery, ...(options.filter === undefined ? {} : { filter: options.filter }) };
  const records = await call(listLatestDrift, { query, atMost: Number(listQuery.limit) }).catch(
    showingFault(options.filter ?? ''),
  );
  if (out.json) out.data(records);
  else if (records.length === 0)
    out.note(
      options.status === undefined ? 'No agent has been checked yet: muster drift AGENT' : 'No agent has this status.',
    );
  else {
    const names = await agentNames(call, new Set(records.map(({ node_id }) => node_id)));
    const name = ({ node_id }: DriftRecord) => names.get(node_id) ?? node_id.slice(0, 12);
    out.table([{ heading: 'AGENT', text: name, flexible: true }, ...columns(out.style.now)], issuesFirst(records));
  }
  return exitOf(
    records.some(({ status }) => status === 'drifted'),
    options,
  );
}

/** Orders records for reading: agents that drifted or could not be checked come first. JSON keeps the API's order. */
const issuesFirst = (records: readonly DriftRecord[]): DriftRecord[] =>
  records.toSorted((one, other) => Number(one.status === 'in_sync') - Number(other.status === 'in_sync'));
