import {
  hasEnded,
  isUlid,
  MusterError,
  type OperationStatus,
  type ResourceResult,
  type Summary,
} from '@muster/protocol';
import type { OperationEntry, OperationOutput } from '@muster/protocol/http';
import { fromJson, type JsonText, toJson } from '../../store/json-text.ts';
import { approvedAgent } from '../../store/queries/agents/agents.ts';
import { outputPage } from '../../store/queries/operation-results.ts';
import { insertOperation, operationById, operations } from '../../store/queries/operations/operations.ts';
import { desiredResourceCount } from '../../store/queries/operations/payloads.ts';
import { statement } from '../../store/transaction.ts';
import { getAgent, requireAgent } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import { readDraft } from '../modules/modules.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import type { LiveOutput } from './live-output.ts';
import { passOpenOperations } from './operation-order.ts';
import { pageBytes, storedResults } from './operation-results.ts';
import { untilFound, type Waiting } from './operation-waiting.ts';
import { keepPayload } from './payloads.ts';
import { modulesOfPlan, requireEqualDesiredSet, requirePlan, staleIfUnresolved } from './plan-binding.ts';
import { currentDesiredSet } from './resolve-agent.ts';

/** Plans and applies of individual agents, from the request to the result. */

export interface OperationRequest {
  kind: 'apply' | 'plan';
  modules: readonly string[];
  ttl?: number | undefined;
  /** A plan for this agent. The apply must match it exactly. */
  plan_id?: string | undefined;
  /** A module that is not stored, for a plan. `files_of` is the revision whose files it uses, by default the newest. */
  draft?: { readonly content: string; readonly files_of?: number | undefined } | undefined;
  /** Whether to queue the operation even if the agent is offline. */
  queue: boolean;
}

export const defaultTtlSecs = 86_400;
export const maxWaitMs = 300_000;
const noSummary: Summary = { total: 0, unchanged: 0, changed: 0, removed: 0, failed: 0, skipped: 0 };

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, operationId: string) => db.get(operationById, { operation_id: operationId });

const toEntry = (row: Row): OperationEntry => ({
  operation_id: row.operation_id,
  node_id: row.node_id,
  kind: row.kind === 'plan' ? 'plan' : 'apply',
  status: row.status,
  modules: fromJson(row.modules),
  requested_by: row.requested_by,
  run_id: row.run_id,
  plan_id: row.plan_id,
  created_at: row.created_at,
  started_at: row.started_at,
  finished_at: row.finished_at,
  summary: fromJson(row.summary) ?? noSummary,
  error: row.error,
});

/**
 * Returns when a queued operation expires, in Unix seconds. An apply for a maintenance window expires no later than
 * the window. A plan does not, because it changes nothing.
 */
export const expiryOf = (kind: 'apply' | 'plan', expiresAt: number, windowEnd: number | null): number =>
  kind === 'apply' && windowEnd !== null ? Math.min(expiresAt, windowEnd) : expiresAt;

/**
 * Queues an operation that brings the agent to its desired state, or that plans the changes.
 * @returns the id of the queued operation
 * @throws MusterError agent_not_found, agent_not_approved, module_not_found, module_unresolved, module_conflict,
 * agent_not_connected; for an apply bound to a plan also operation_not_found, plan_stale; for a draft also
 * module_invalid
 */
export async function submitOperation(
  context: Context,
  actor: Actor,
  idOrName: string,
  request: OperationRequest,
): Promise<string> {
  const agent = await getAgent(context, idOrName);
  const label = agent.name ?? agent.initial_hostname;
  const plan = request.plan_id === undefined ? null : await requirePlan(context, request.plan_id, agent.node_id);
  const draft =
    request.draft === undefined ? null : await readDraft(context, request.draft.content, request.draft.files_of);
  // Records the draft's module by name, so that the plan can be applied once the module is stored.
  const requested = draft === null ? request.modules : [...new Set([...request.modules, draft.document.name])];
  const modules = plan === null ? requested : modulesOfPlan(plan, requested);
  const current = () => currentDesiredSet(context, agent, modules, { draft: draft?.document });
  const { desired, payload, resolved, secrets, revisions, until } = await (plan === null
    ? current()
    : staleIfUnresolved(plan, current));
  if (plan !== null)
    await requireEqualDesiredSet(context, plan, { digest: payload.digest, secrets, lookups: resolved.lookups });
  if (agent.status !== 'approved') throw new MusterError('agent_not_approved', `the agent is ${agent.status}`);
  if (!request.queue && !context.presence.isConnected(agent.node_id))
    throw new MusterError('agent_not_connected', `${label} is offline`);
  await passOpenOperations(context, [agent.node_id]);
  const operationId = context.newId();
  const now = seconds(context.now());
  const expires_at = expiryOf(request.kind, now + (request.ttl ?? defaultTtlSecs), until);
  const applied = request.kind === 'apply' ? toJson(revisions) : null;
  await context.db.write({
    name: `operations/submit ${request.kind}`,
    statements: [
      statement(approvedAgent, { node_id: agent.node_id }, { expect: 'row', else: 'agent_not_approved' }),
      ...keepPayload(payload),
      statement(insertOperation, {
        operation_id: operationId,
        node_id: agent.node_id,
        kind: request.kind,
        modules: toJson(desired.modules),
        requested_by: actor.id,
        run_id: null,
        plan_id: plan?.operation_id ?? null,
        created_at: now,
        expires_at,
        trigger: null,
        payload_digest: payload.digest,
        snapshot_operation_id: null,
        requested_modules: toJson([...modules]),
        secret_versions: request.kind === 'plan' ? toJson(secrets) : null,
        revisions: applied,
      }),
      audited(context, {
        type: 'state.requested',
        actor,
        target: { type: 'agent', id: agent.node_id, name: label },
        summary: `${request.kind} on ${label} requested`,
        metadata: {
          ...{ operation_id: operationId, modules: desired.modules },
          ...(draft === null ? {} : { draft: { name: draft.document.name, digest: draft.digest } }),
        },
      }),
    ],
  });
  const { node_id } = agent;
  const queued = {
    operation_id: operationId,
    node_id,
    kind: request.kind,
    modules: desired.modules,
    requested_by: actor.id,
    run_id: null,
    trigger: null,
    payload_digest: payload.digest,
    revisions: applied,
    label,
  };
  // The hint omits an apply that is bound to a plan, because dispatch compares such an apply with the plan again.
  context.bus.publish({ type: 'work', node_id, ...(plan === null ? { operation: queued } : {}) });
  return operationId;
}

/**
 * Waits for an operation to end.
 * @returns the operation, and whether it has ended
 */
export async function awaitOperation(
  context: Context,
  waiting: Waiting,
  operationId: string,
  signal?: AbortSignal,
): Promise<{ operation: OperationInPages; ended: boolean }> {
  const look = async () => {
    const row = await findRow(context, operationId);
    return !row || hasEnded(row.status) ? true : null;
  };
  await untilFound(context, waiting, operationId, look, context.now() + maxWaitMs, signal);
  const operation = await readOperation(context, operationId);
  return { operation, ended: hasEnded(operation.status) };
}

/** An operation whose results are read page by page while the response is sent. */
export type OperationInPages = OperationEntry & { resources: AsyncIterable<readonly JsonText<ResourceResult>[]> };

/**
 * Returns an operation. Until the operation ends, `total` in its summary is the number of desired resources, so that
 * clients can show the progress.
 */
export async function readOperation(context: Context, operationId: string): Promise<OperationInPages> {
  const row = await findRow(context, operationId);
  if (!row || row.kind === 'drift')
    throw new MusterError('operation_not_found', `there is no operation ${JSON.stringify(operationId.slice(0, 64))}`);
  const entry = toEntry(row);
  const desired = hasEnded(row.status)
    ? undefined
    : await context.db.get(desiredResourceCount, { operation_id: operationId });
  const summary = { ...entry.summary, total: desired?.count ?? entry.summary.total };
  return { ...entry, summary, resources: resultTexts(context, operationId) };
}

async function* resultTexts(context: Context, operationId: string): AsyncGenerator<JsonText<ResourceResult>[]> {
  for await (const rows of storedResults(context, operationId)) yield rows.map(({ text }) => text);
}

export interface OperationFilter {
  agent?: string | undefined;
  status?: OperationStatus | undefined;
  kind?: 'apply' | 'plan' | undefined;
  cursor?: string | undefined;
  limit?: number | undefined;
  offset?: number | undefined;
}

/** Returns a page of operations, newest first; an empty page for an unknown agent. */
export async function listOperations(context: Context, filter: OperationFilter) {
  const limit = filter.limit ?? 50;
  const offset = filter.offset ?? 0;
  if (filter.cursor !== undefined && !isUlid(filter.cursor))
    throw new MusterError('invalid_input', 'the cursor is invalid', [
      { path: '/cursor', message: 'must be the next_cursor of an earlier response' },
    ]);
  let nodeId: string | undefined;
  if (filter.agent !== undefined) {
    try {
      nodeId = (await requireAgent(context, filter.agent)).node_id;
    } catch (error) {
      if (!(error instanceof MusterError && error.code === 'agent_not_found')) throw error;
      nodeId = filter.agent;
    }
  }
  const rows = await context.db.all(
    operations({
      node_id: nodeId !== undefined,
      status: filter.status !== undefined,
      kind: filter.kind !== undefined,
      below: filter.cursor !== undefined,
    }),
    {
      node_id: nodeId,
      status: filter.status,
      kind: filter.kind,
      below: filter.cursor,
      limit: limit + 1,
      offset,
    },
  );
  const page = rows.slice(0, limit);
  const more = page.length > 0 && rows.length > limit;
  return {
    operations: page.map(toEntry),
    limit,
    offset,
    has_more: more,
    next_cursor: more ? (page.at(-1)?.operation_id ?? null) : null,
  };
}

type Printed = OperationOutput['output'][string];

/** Output whose entries are streamed, one per resource. */
export interface OutputInPages {
  operation_id: string;
  output: AsyncIterable<readonly (readonly [resource: string, printed: JsonText<Printed>])[]>;
}

/**
 * Returns an operation's recorded output. While the program runs, or if its report has not arrived, returns the output
 * so far.
 * @throws MusterError operation_not_found, also if the operation belongs to another agent
 */
export async function readOutput(
  context: Context,
  live: Pick<LiveOutput, 'of'>,
  idOrName: string,
  operationId: string,
): Promise<OutputInPages> {
  const agent = await requireAgent(context, idOrName);
  const row = await findRow(context, operationId);
  if (!row || row.kind === 'drift' || row.node_id !== agent.node_id) throw new MusterError('operation_not_found');
  // Reads live output before stored output, so that output reported between the two reads appears in both rather than
  // in neither.
  const running = hasEnded(row.status) ? {} : await live.of(row.node_id, operationId);
  return { operation_id: operationId, output: outputTexts(context, operationId, new Map(Object.entries(running))) };
}

async function* outputTexts(
  { db }: Context,
  operationId: string,
  running: Map<string, Pick<Printed, 'stdout' | 'stderr' | 'truncated'>>,
): AsyncGenerator<(readonly [string, JsonText<Printed>])[]> {
  for (let after = ''; ; ) {
    const rows = await db.all(outputPage, { operation_id: operationId, after, bytes: pageBytes });
    const last = rows.at(-1);
    if (last === undefined) break;
    yield rows.map(({ resource_key, stdout, stderr, exit_code, truncated }) => {
      running.delete(resource_key);
      return [resource_key, toJson({ stdout, stderr, exit_code, truncated: truncated === 1 })] as const;
    });
    after = last.resource_key;
  }
  yield [...running].map(
    ([resource, soFar]) => [resource, toJson({ ...soFar, exit_code: null, running: true as const })] as const,
  );
}
