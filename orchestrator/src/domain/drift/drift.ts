import { hasEnded, MusterError, type Summary } from '@muster/protocol';
import type { DriftRecord } from '@muster/protocol/http';
import { isEmpty, matchesSelector } from '@muster/protocol/selector';
import { fromJson, type JsonText, toJson } from '../../store/json-text.ts';
import { approvedAgent } from '../../store/queries/agents/agents.ts';
import {
  driftById,
  driftIds,
  driftRecords,
  insertDriftRecord,
  latestDrifts,
  putLatestDrift,
} from '../../store/queries/drift.ts';
import { insertOperation, openOperations, operationById } from '../../store/queries/operations/operations.ts';
import { agentState } from '../../store/queries/state.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { requireAgent, requireSelector } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import { passOpenOperations } from '../operations/operation-order.ts';
import { untilFound, type Waiting } from '../operations/operation-waiting.ts';
import { maxWaitMs } from '../operations/operations.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';
import { checkEffects } from './drift-effects.ts';
import type { Verdict } from './drift-findings.ts';

/**
 * Drift is the difference between a machine and its last successful apply. A check is an operation, and its drift
 * record has the same id.
 */

export type DriftTrigger = DriftRecord['trigger'];

/** Seconds after which a queued check expires, because its result would be useless. */
const checkTtlSecs = 300;

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, driftId: string) => db.get(driftById, { drift_id: driftId });

const toRecord = (row: Row): DriftRecord => ({
  drift_id: row.drift_id,
  node_id: row.node_id,
  status: row.status,
  trigger: row.trigger,
  checked_at: row.checked_at,
  snapshot_operation_id: row.snapshot_operation_id,
  summary: fromJson(row.summary),
  resources: fromJson(row.resources),
  error: row.error,
  accepted: fromJson(row.accepted),
});

/**
 * Queues a drift check.
 * @param also statements for the same transaction
 * @returns the id of the operation
 * @throws MusterError agent_not_found, agent_not_approved, nothing_applied, agent_not_connected
 */
export async function submitDriftCheck(
  context: Context,
  actor: Actor,
  idOrName: string,
  trigger: DriftTrigger,
  also: readonly Statement[] = [],
): Promise<string> {
  const agent = await requireAgent(context, idOrName);
  if (agent.status !== 'approved') throw new MusterError('agent_not_approved', `the agent is ${agent.status}`);
  const state = await context.db.get(agentState, { node_id: agent.node_id });
  const snapshot = state?.snapshot_operation_id ?? null;
  if (snapshot === null)
    throw new MusterError('nothing_applied', `no apply has succeeded on ${agent.name ?? agent.node_id} yet`);
  const label = agent.name ?? agent.initial_hostname;
  if (!context.presence.isConnected(agent.node_id)) throw new MusterError('agent_not_connected', `${label} is offline`);
  await passOpenOperations(context, [agent.node_id]);
  const operationId = context.newId();
  const check = { operation_id: operationId, node_id: agent.node_id, requested_by: actor.id, trigger };
  const statements = checkStatements(context, { ...check, snapshot_operation_id: snapshot });
  // Records an event only for manual checks. Other triggers are frequent, so only their findings are recorded.
  if (trigger === 'operator')
    statements.push(
      audited(context, {
        type: 'drift.requested',
        actor,
        target: { type: 'agent', id: agent.node_id, name: label },
        summary: `drift check of ${label} requested`,
        metadata: { operation_id: operationId },
      }),
    );
  await context.db.write({ name: 'drift/check', statements: [...statements, ...also] });
  context.bus.publish({ type: 'work', node_id: agent.node_id });
  return operationId;
}

/**
 * Returns the statements that queue a check. The transaction fails with `agent_not_approved` if the agent is not
 * approved.
 */
export function checkStatements(
  { now }: Pick<Context, 'now'>,
  check: {
    operation_id: string;
    node_id: string;
    requested_by: string;
    trigger: DriftTrigger;
    snapshot_operation_id: string | null;
  },
): Statement[] {
  const { node_id } = check;
  const created_at = seconds(now());
  return [
    statement(approvedAgent, { node_id }, { expect: 'row', else: 'agent_not_approved' }),
    statement(insertOperation, {
      ...check,
      kind: 'drift',
      modules: toJson<string[]>([]),
      run_id: null,
      plan_id: null,
      created_at,
      expires_at: created_at + checkTtlSecs,
      payload_digest: null,
      requested_modules: toJson<string[]>([]),
      secret_versions: null,
      revisions: null,
    }),
  ];
}

/**
 * Reports whether a check is queued but not dispatched. Such a check observes all changes so far, whereas a dispatched
 * check may have missed some.
 */
export async function driftCheckWaits({ db, now }: Context, nodeId: string): Promise<boolean> {
  const at = seconds(now());
  return (await db.all(openOperations, { node_id: nodeId })).some(
    ({ kind, dispatched_at, expires_at }) =>
      kind === 'drift' && dispatched_at === null && (expires_at === null || expires_at > at),
  );
}

/**
 * Queues a check and waits for it to end.
 * @throws MusterError like {@link submitDriftCheck}; agent_timeout if the check takes too long
 */
export async function checkDrift(
  context: Context,
  waiting: Waiting,
  actor: Actor,
  idOrName: string,
  signal?: AbortSignal,
): Promise<DriftRecord> {
  const driftId = await submitDriftCheck(context, actor, idOrName, 'operator');
  const look = async (): Promise<Row | 'never' | null> => {
    const row = await findRow(context, driftId);
    if (row) return row;
    const operation = await context.db.get(operationById, { operation_id: driftId });
    return !operation || hasEnded(operation.status) ? ((await findRow(context, driftId)) ?? 'never') : null;
  };
  const found = await untilFound(context, waiting, driftId, look, context.now() + maxWaitMs, signal);
  if (found === null && signal?.aborted)
    throw new MusterError(
      'draining',
      'the orchestrator is stopping; the check continues, and its record will appear in the list of drift records',
    );
  if (found === null || found === 'never') {
    const operation = await context.db.get(operationById, { operation_id: driftId });
    throw new MusterError('agent_timeout', operation?.error ?? undefined);
  }
  return toRecord(found);
}

export async function getDrift(context: Context, driftId: string): Promise<DriftRecord> {
  const row = await findRow(context, driftId);
  if (!row)
    throw new MusterError('drift_not_found', `there is no drift record ${JSON.stringify(driftId.slice(0, 64))}`);
  return toRecord(row);
}

type Status = DriftRecord['status'];

/** Maximum number of bytes of records per page. A single record may be almost 1 MiB. */
const pageBytes = 4 * 1024 * 1024;

/** Reads the records for a page of ids. If the records are large, returns fewer of them and sets `more`. */
async function readRecords({ db }: Context, { items, more }: Page<string>): Promise<Page<DriftRecord>> {
  const rows = items.length === 0 ? [] : await db.all(driftRecords, { ids: items, bytes: pageBytes });
  return { items: rows.map(toRecord), more: more || rows.length < items.length };
}

/** Lists one agent's records, newest first. */
export async function listDrift(
  context: Context,
  idOrName: string,
  filter: PageRequest & { status?: Status | undefined },
): Promise<Page<DriftRecord>> {
  const { node_id } = await requireAgent(context, idOrName);
  const query = driftIds({ status: filter.status !== undefined });
  const read = (page: PageRequest) => context.db.all(query, { node_id, status: filter.status, ...page });
  return readRecords(
    context,
    mapPage(await readPage(filter, read), ({ drift_id }) => drift_id),
  );
}

export async function latestDrift(context: Context, idOrName: string): Promise<DriftRecord | null> {
  return (await listDrift(context, idOrName, { limit: 1, offset: 0 })).items[0] ?? null;
}

/** Maximum number of agents matched before yielding to the event loop. */
const agentsPerTurn = 500;

/** Lists each agent's latest record, newest first. With a selector, the offset and limit apply after matching. */
export async function listLatestDrift(
  context: Context,
  filter: PageRequest & { status?: Status | undefined; filter?: string | undefined },
): Promise<Page<DriftRecord>> {
  const selector = filter.filter === undefined ? null : requireSelector(filter.filter, '/filter');
  const { status } = filter;
  const labels = selector !== null && !isEmpty(selector);
  const read = (below: string | undefined, page: PageRequest) =>
    context.db.all(latestDrifts({ status: status !== undefined, below: below !== undefined, labels }), {
      status,
      below,
      ...page,
    });
  const ids = await readPage(filter, async ({ limit, offset }) => {
    if (!labels) return (await read(undefined, { limit, offset })).map(({ drift_id }) => drift_id);
    const found: string[] = [];
    let toSkip = offset;
    let below: string | undefined;
    for (;;) {
      const rows = await read(below, { limit: agentsPerTurn, offset: 0 });
      for (const { drift_id, tags, attributes } of rows) {
        const labeled = { tags: fromJson(tags ?? none), attributes: fromJson(attributes ?? none) };
        if (!matchesSelector(selector, labeled)) continue;
        if (toSkip > 0) toSkip--;
        else if (found.push(drift_id) === limit) return found;
      }
      if (rows.length < agentsPerTurn) return found;
      below = rows.at(-1)?.drift_id;
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  return readRecords(context, ids);
}

const none: JsonText<Record<string, string>> = '{}';

/**
 * Returns the statements that record a finished check and its event, if any.
 * @param scope what the check compared, see drift-effects.ts; null if the check no longer counts
 */
export async function driftStatements(
  context: Context,
  operation: {
    operation_id: string;
    node_id: string;
    trigger: DriftTrigger | null;
    snapshot_operation_id: string | null;
  },
  { label, scope }: { label: string; scope: string | null },
  verdict: Verdict,
  summary: Summary,
  error: string | null,
): Promise<Statement[]> {
  const { node_id, operation_id } = operation;
  const effects =
    scope === null
      ? { accepted: null, statements: [] }
      : await checkEffects(context, { node_id, label, scope }, operation_id, verdict);
  // The drift that the check found is accepted, but the check failed to observe the other resources.
  const status = effects.accepted !== null && !verdict.complete ? 'failed' : verdict.status;
  return [
    statement(insertDriftRecord, {
      drift_id: operation_id,
      node_id,
      operation_id,
      status,
      trigger: operation.trigger ?? 'operator',
      checked_at: seconds(context.now()),
      snapshot_operation_id: operation.snapshot_operation_id ?? '',
      summary: toJson(summary),
      resources: toJson(verdict.deviations.map(({ result }) => result)),
      error,
      accepted: effects.accepted === null ? null : toJson(effects.accepted),
    }),
    ...(scope === null ? [] : [statement(putLatestDrift, { node_id, drift_id: operation_id, status })]),
    ...effects.statements,
  ];
}
