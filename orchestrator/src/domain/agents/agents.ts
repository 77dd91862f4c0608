import { setImmediate as nextTurn } from 'node:timers/promises';
import { isKeyId, isName, MusterError } from '@muster/protocol';
import type { Agent, AgentSort, AgentStatus } from '@muster/protocol/http';
import { isEmpty as isEmptySelector, matchesSelector, parseSelector, type Selector } from '@muster/protocol/selector';
import { fromJson } from '../../store/json-text.ts';
import { deleteUsage } from '../../store/queries/agents/agent-usage.ts';
import {
  agentById,
  agentByName,
  agentIdTakingName,
  agentSortKeys,
  agents,
  agentsByIds,
  deleteRejectedAgent,
  deleteSpool,
  namesInOrder,
  type ShownAgent,
  setAgentStatus,
  shownAgentById,
  shownAgentByName,
} from '../../store/queries/agents/agents.ts';
import { deleteLatestDriftOf } from '../../store/queries/drift.ts';
import { deleteDriftStatesOf } from '../../store/queries/drift-states.ts';
import { agentsNeverApplied } from '../../store/queries/overview.ts';
import { deleteAppliedModules, deleteEveryApplied, deleteStateOf } from '../../store/queries/state.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { cancelling } from '../operation-end/cancellation.ts';
import { AgentRecord } from '../shared/agent-records.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { type Page, type PageRequest, readPage } from '../shared/page.ts';

export type AgentRow = NonNullable<Awaited<ReturnType<typeof findById>>>;
const findShown = ({ db }: Context, nodeId: string) => db.get(shownAgentById, { node_id: nodeId });
const findById = ({ db }: Context, nodeId: string) => db.get(agentById, { node_id: nodeId });

/**
 * Returns the agent with a node id, or the approved agent with a name.
 * @throws MusterError agent_not_found
 */
export async function requireAgent(context: Context, idOrName: string): Promise<AgentRow> {
  const row = isKeyId(idOrName)
    ? await findById(context, idOrName)
    : isName(idOrName)
      ? await context.db.get(agentByName, { name: idOrName })
      : undefined;
  return row ?? notThere(idOrName);
}

/** Finds an agent like {@link requireAgent}, but reads only the columns of an API response. */
async function requireShown(context: Context, idOrName: string): Promise<ShownAgent> {
  const row = isKeyId(idOrName)
    ? await findShown(context, idOrName)
    : isName(idOrName)
      ? await context.db.get(shownAgentByName, { name: idOrName })
      : undefined;
  return row ?? notThere(idOrName);
}

function notThere(idOrName: string): never {
  throw new MusterError('agent_not_found', `there is no agent ${JSON.stringify(idOrName.slice(0, 64))}`);
}

export const lastSeen = (row: Pick<AgentRow, 'last_seen_at'>, lastContact: number | null): number =>
  Math.max(lastContact ?? 0, row.last_seen_at);

function toAgent({ presence }: Context, row: ShownAgent): Agent {
  const lastContact = presence.lastContactAt(row.node_id);
  return {
    node_id: row.node_id,
    name: row.name,
    status: row.status,
    agent_version: row.agent_version,
    attributes: fromJson(row.attributes),
    tags: fromJson(row.tags),
    connected: lastContact !== null,
    connected_at: row.connected_at,
    updated_at: row.updated_at,
    last_seen_at: lastSeen(row, lastContact),
    initial_hostname: row.initial_hostname,
    initial_ip: row.initial_ip,
    pin_source: row.pin_source as Agent['pin_source'],
  };
}

export async function getAgent(context: Context, idOrName: string): Promise<Agent> {
  return toAgent(context, await requireShown(context, idOrName));
}

/**
 * Returns an agent as JSON in UTF-8, like {@link getAgent}.
 * @returns a promise only if the agent must be read from the database
 */
export function getAgentJson(context: Context, idOrName: string): Buffer | Promise<Buffer> {
  const found = requireRecord(context, idOrName);
  return found instanceof Promise ? found.then((record) => shown(context, record)) : shown(context, found);
}

/**
 * Finds an agent like {@link requireAgent}, in memory if possible.
 * @returns a promise only if the agent must be read from the database
 */
export function requireRecord(context: Context, idOrName: string): AgentRecord | Promise<AgentRecord> {
  const { agentRecords } = context;
  return (
    agentRecords.find(idOrName) ??
    agentRecords.read(async () => [await requireShown(context, idOrName)]).then(([record]) => record as AgentRecord)
  );
}

const shown = ({ presence }: Context, record: AgentRecord): Buffer =>
  record.json(presence.lastContactAt(record.nodeId));

export async function getAttributes(context: Context, idOrName: string): Promise<Record<string, string>> {
  return fromJson((await requireAgent(context, idOrName)).attributes);
}

/**
 * Parses a selector.
 * @throws MusterError selector_invalid, with the column of the error
 */
export function requireSelector(text: string, path: string): Selector {
  const parsed = parseSelector(text);
  if (!parsed.ok)
    throw new MusterError('selector_invalid', `${parsed.fault.message} (column ${parsed.fault.column})`, [
      { path, message: parsed.fault.message, line: 1, column: parsed.fault.column },
    ]);
  return parsed.selector;
}

export interface AgentFilter {
  status?: AgentStatus | undefined;
  filter?: string | undefined;
  q?: string | undefined;
  sort?: AgentSort | undefined;
  limit?: number | undefined;
  offset?: number | undefined;
}

/**
 * Maximum number of agents to read and convert before yielding to the event loop. Large enough to read a page of 500 in
 * one batch, including the extra agent that shows whether another page follows.
 */
const agentsPerTurn = 512;

export const listAgents = (context: Context, filter: AgentFilter): Promise<Agent[]> =>
  listShaped(context, filter, (row) => toAgent(context, row));

export async function listAgentNames(
  context: Context,
  { status, filter }: Pick<AgentFilter, 'status' | 'filter'>,
): Promise<{ node_id: string; name: string | null }[]> {
  // Without a selector, few columns of the agents are needed.
  if (filter !== undefined && !isEmptySelector(requireSelector(filter, '/filter')))
    return listShaped(context, { status, filter }, ({ node_id, name }) => ({ node_id, name }));
  return context.db.all(namesInOrder({ status: status !== undefined }), { status });
}

async function listShaped<T>(context: Context, filter: AgentFilter, shape: (row: ShownAgent) => T): Promise<T[]> {
  const found: T[] = [];
  for await (const part of shapedInTurns(context, filter, shape)) for (const each of part) found.push(each);
  return found;
}

/**
 * Yields agents in batches. With a selector or a text filter, applies the offset and limit after matching, because the
 * database cannot evaluate every term.
 */
async function* shapedInTurns<T>(
  context: Context,
  filter: AgentFilter,
  shape: (row: ShownAgent) => T,
  perTurn = agentsPerTurn,
): AsyncGenerator<T[]> {
  const selector = filter.filter === undefined ? null : requireSelector(filter.filter, '/filter');
  const selective = selector !== null && !isEmptySelector(selector);
  const text = filter.q ? foldAscii(filter.q) : null;
  const cut = selective || text !== null;
  const matches = (agent: Agent) =>
    (!selective || matchesSelector(selector, agent)) && (text === null || isNamed(agent, text));
  let left = filter.limit ?? Number.MAX_SAFE_INTEGER;
  if (left === 0) return;
  // Without a selector or a text filter, the database applies the offset.
  let toSkip = filter.offset ?? 0;
  const skipped = cut ? 0 : toSkip;
  toSkip -= skipped;
  const maxRows = cut ? perTurn : Math.min(perTurn, left);
  for await (const rows of agentRows(context, filter, skipped, maxRows)) {
    const found: T[] = [];
    for (const row of rows) {
      if (cut && !matches(toAgent(context, row))) continue;
      if (toSkip > 0) toSkip--;
      else if (found.push(shape(row)) === left) break;
    }
    left -= found.length;
    yield found;
    if (left === 0) return;
  }
}

/** Yields the candidate agents, in order and in batches. The caller matches the selector and the text. */
async function* agentRows(
  context: Context,
  filter: AgentFilter,
  offset: number,
  size: number,
): AsyncGenerator<ShownAgent[]> {
  const { status, q } = filter;
  const variant = { status: status !== undefined, q: !!q };
  if (filter.sort === undefined) {
    // Pages by id, so that no agent is skipped if other agents are added or removed during the scan.
    let after: string | undefined;
    for (let skip = offset; ; skip = 0) {
      const query = agents({ ...variant, after: after !== undefined });
      const rows = await context.db.all(query, { status, q, after, limit: size, offset: skip });
      yield rows;
      if (rows.length < size) return;
      after = rows.at(-1)?.node_id;
      await nextTurn();
    }
  }
  const ids = inOrder(context, await context.db.all(agentSortKeys(variant), { status, q }), filter.sort);
  for (let start = offset; start < ids.length; start += size) {
    const pageIds = ids.slice(start, start + size);
    const rows = new Map((await context.db.all(agentsByIds, { ids: pageIds })).map((row) => [row.node_id, row]));
    // An agent may have been removed, or have changed its status, after the sort.
    const still = pageIds.flatMap((id) => rows.get(id) ?? []);
    yield status === undefined ? still : still.filter((row) => row.status === status);
    await nextTurn();
  }
}

type SortKey = Pick<AgentRow, 'node_id' | 'name' | 'connected_at' | 'last_seen_at'>;

/**
 * Sorts agents in memory, because only the gateway knows when a connected agent was last heard from. Agents without a name
 * come last.
 */
function inOrder({ presence }: Context, keys: readonly SortKey[], sort: NonNullable<AgentFilter['sort']>): string[] {
  const descending = sort.startsWith('-');
  const column = sort.replace('-', '') as 'name' | 'connected_at' | 'last_seen_at';
  const sortedBy = (key: SortKey) =>
    column === 'last_seen_at' ? lastSeen(key, presence.lastContactAt(key.node_id)) : key[column];
  const compare = <T extends string | number>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0);
  return keys
    .map((key) => ({ id: key.node_id, value: sortedBy(key) }))
    .sort((a, b) => {
      if (a.value === null || b.value === null) {
        if (a.value !== b.value) return a.value === null ? 1 : -1;
      } else if (a.value !== b.value) return descending ? compare(b.value, a.value) : compare(a.value, b.value);
      return compare(a.id, b.id);
    })
    .map(({ id }) => id);
}

/** Folds only ASCII case, as the databases do in comparisons. */
const foldAscii = (text: string): string => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

const isNamed = ({ name, initial_hostname, attributes }: Agent, folded: string): boolean =>
  [name, initial_hostname, Object.hasOwn(attributes, 'hostname') ? attributes.hostname : null].some(
    (text) => typeof text === 'string' && foldAscii(text).includes(folded),
  );

/** Reports whether a query lists all agents by ID; such a list may come from memory. */
export const isWholeFleet = ({ status, filter, q, sort }: AgentFilter): boolean =>
  !q && filter === undefined && status === undefined && sort === undefined;

/** Returns a page of agents, each as JSON in UTF-8. */
export const listAgentPage = (context: Context, filter: AgentFilter, request: PageRequest): Promise<Page<Buffer>> =>
  readPage(request, async (part) => {
    const found: Buffer[] = [];
    for await (const batch of agentsInTurns(context, { ...filter, ...part })) found.push(...batch);
    return found;
  });

/**
 * Yields agents as JSON in UTF-8, in batches, so that the first batch is sent before the rest is read. Reads them from
 * memory if all agents are listed by ID.
 */
export async function* agentsInTurns(
  context: Context,
  filter: AgentFilter,
  perTurn = agentsPerTurn,
): AsyncGenerator<Buffer[]> {
  const { offset = 0, limit = Number.MAX_SAFE_INTEGER } = filter;
  if (!isWholeFleet(filter)) {
    yield* shapedInTurns(context, filter, (row) => shown(context, new AgentRecord(row)), perTurn);
    return;
  }
  let after: string | undefined;
  for (let left = limit; left > 0; left -= perTurn) {
    if (after !== undefined) await nextTurn();
    const part = { after, limit: Math.min(left, perTurn), offset: after === undefined ? offset : 0 };
    const records = await context.agentRecords.page(JSON.stringify(part), () =>
      context.db.all(agents({ after: after !== undefined }), { ...part, status: undefined, q: undefined }),
    );
    yield records.map((record) => shown(context, record));
    if (records.length < part.limit) return;
    after = records.at(-1)?.nodeId;
  }
}

/** Returns the approved agents that match a selector; none for an empty selector. */
export async function approvedMatching(context: Context, selector: Selector): Promise<Agent[]> {
  if (isEmptySelector(selector)) return [];
  return (await listAgents(context, { status: 'approved' })).filter((agent) => matchesSelector(selector, agent));
}

/**
 * Returns the IDs of the approved agents without a successful apply that match a selector. The empty selector matches
 * all of them.
 */
export async function neverAppliedMatching(context: Context, selector: Selector): Promise<string[]> {
  const found = (await context.db.all(agentsNeverApplied, {})).map(({ node_id }) => node_id);
  if (isEmptySelector(selector)) return found;
  const matching = new Set((await approvedMatching(context, selector)).map(({ node_id }) => node_id));
  return found.filter((node_id) => matching.has(node_id));
}

/** Returns the agents with the specified IDs. Omits agents that do not exist. */
export async function agentsWithIds(context: Context, nodeIds: readonly string[]): Promise<Map<string, Agent>> {
  const rows = await context.db.all(agentsByIds, { ids: [...nodeIds] });
  return new Map(rows.map((row) => [row.node_id, toAgent(context, row)]));
}

const nameFault = '1 to 64 letters, digits, - or _, starting with a letter, and not in the form of a node id';

export function requireAgentName(name: string): void {
  if (!isName(name))
    throw new MusterError('invalid_input', `name must be ${nameFault}`, [
      { path: '/name', message: `must be ${nameFault}` },
    ]);
}

/** Approves or rejects an agent. Setting the current status again has no effect. */
export async function setStatus(
  context: Context,
  actor: Actor,
  idOrName: string,
  requested: { status: 'approved' | 'rejected'; name?: string | undefined },
): Promise<Agent> {
  if (requested.status === 'approved' && requested.name !== undefined) requireAgentName(requested.name);
  return withAgent(context, idOrName, (row) => changeStatus(context, actor, row, requested));
}

/** Reads an agent and calls `act`. Repeats both if the agent was changed between the two steps. */
async function withAgent<T>(context: Context, idOrName: string, act: (row: AgentRow) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const row = await requireAgent(context, idOrName);
    try {
      return await act(row);
    } catch (error) {
      if (!(error instanceof MusterError && error.code === 'agent_changed' && attempt < 5)) throw error;
    }
  }
}

async function changeStatus(
  context: Context,
  actor: Actor,
  row: AgentRow,
  requested: { status: 'approved' | 'rejected'; name?: string | undefined },
): Promise<Agent> {
  const statements: Statement[] = [];
  let name = row.name;
  if (requested.status === 'approved') {
    if (row.name !== null && requested.name !== undefined && requested.name !== row.name)
      throw new MusterError('agent_named', `the agent already has the name ${row.name}`);
    name = row.name ?? requested.name ?? null;
    if (name === null)
      throw new MusterError('name_required', undefined, [{ path: '/name', message: `must be ${nameFault}` }]);
    statements.push(
      statement(
        agentIdTakingName,
        { name, node_id: row.node_id },
        { expect: 'no_row', else: 'name_taken', detail: `another agent is named ${name}` },
      ),
    );
  }
  if (row.status !== requested.status) {
    const at = seconds(context.now());
    const label = name ?? row.initial_hostname;
    statements.push(
      statement(
        setAgentStatus,
        { node_id: row.node_id, from: row.status, status: requested.status, name, now: at },
        { expect: 'changed', else: 'agent_changed' },
      ),
      audited(context, {
        type: requested.status === 'rejected' ? 'agent.rejected' : 'agent.approved',
        actor,
        target: { type: 'agent', id: row.node_id, name: label },
        summary: `agent ${label} ${requested.status}`,
        metadata: { from: row.status },
      }),
    );
    const ended =
      requested.status === 'rejected'
        ? await cancelling(context, actor, row.node_id, label, 'the agent was rejected')
        : null;
    const unit = { name: 'agents/set status', statements: [...statements, ...(ended?.statements ?? [])] };
    const result = await context.db.write(unit);
    ended?.announce(result);
    context.bus.publish({ type: 'agent_changed', node_id: row.node_id });
  }
  return getAgent(context, row.node_id);
}

export async function removeAgent(context: Context, actor: Actor, idOrName: string): Promise<void> {
  await withAgent(context, idOrName, (row) => removeRow(context, actor, row));
}

async function removeRow(context: Context, actor: Actor, row: AgentRow): Promise<void> {
  if (row.status !== 'rejected') throw new MusterError('agent_not_rejected', `the agent is ${row.status}`);
  const label = row.name ?? row.initial_hostname;
  const ended = await cancelling(context, actor, row.node_id, label, 'the agent was removed');
  const result = await context.db.write({
    name: 'agents/remove',
    statements: [
      statement(agentById, { node_id: row.node_id }, { expect: 'row', else: 'agent_not_found' }),
      statement(deleteRejectedAgent, { node_id: row.node_id }, { expect: 'changed', else: 'agent_not_rejected' }),
      ...ended.statements,
      statement(deleteStateOf, { node_id: row.node_id }),
      statement(deleteEveryApplied, { node_id: row.node_id }),
      statement(deleteAppliedModules, { node_id: row.node_id, stay: [] }),
      statement(deleteSpool, { node_id: row.node_id }),
      statement(deleteUsage, { node_id: row.node_id }),
      statement(deleteLatestDriftOf, { node_id: row.node_id }),
      statement(deleteDriftStatesOf, { node_id: row.node_id }),
      audited(context, {
        type: 'agent.removed',
        actor,
        target: { type: 'agent', id: row.node_id, name: label },
        summary: `agent ${label} removed`,
      }),
    ],
  });
  ended.announce(result);
  context.bus.publish({ type: 'agent_removed', node_id: row.node_id });
}
