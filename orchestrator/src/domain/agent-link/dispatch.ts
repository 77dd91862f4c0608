import { MusterError, stalePlanError } from '@muster/protocol';
import type { ResolvedResource } from '@muster/protocol/module';
import type { OperationMessage } from '@muster/protocol/wire';
import type { QueuedOperation } from '../../bus/bus.ts';
import { fromJson } from '../../store/json-text.ts';
import { agentById } from '../../store/queries/agents/agents.ts';
import { markDispatched, oldestOpen, setSnapshot } from '../../store/queries/operations/dispatch.ts';
import type { ReportedOperation } from '../../store/queries/operations/operations.ts';
import { agentState } from '../../store/queries/state.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { getAgent } from '../agents/agents.ts';
import { coveredUntil, openWindows } from '../modules/windows.ts';
import { announceEnd, type EndingOperation, endStatements, ignoreFinished } from '../operation-end/operation-end.ts';
import type { MarkOnly } from '../operations/dispatch-marks.ts';
import type { OperationCache } from '../operations/operation-cache.ts';
import type { Payloads } from '../operations/payloads.ts';
import { requirePlan, type SecretVersions, versionsIn } from '../operations/plan-binding.ts';
import { withEarlierSecrets } from '../operations/report-secrets.ts';
import { requirePlanStillValid } from '../operations/resolve-agent.ts';
import type { SentSecret } from '../secrets/secret-access.ts';
import { type Context, seconds, systemActor } from '../shared/context.ts';

type Row = Awaited<ReturnType<typeof openRows>>[number];
const openRows = ({ db, now }: Context, nodeId: string) => db.all(oldestOpen, { node_id: nodeId, now: seconds(now()) });

interface DispatchSources {
  readonly cache: OperationCache;
  readonly payloads: Payloads;
  readonly markOnly: MarkOnly;
}

/** An operation that was marked as dispatched. `dispatched_at` contains the previous time. */
type Marked = Pick<Row, 'kind' | 'trigger' | 'payload_digest' | 'snapshot_operation_id' | 'dispatched_at'> &
  Pick<QueuedOperation, 'operation_id' | 'node_id' | 'modules' | 'requested_by' | 'run_id' | 'revisions' | 'label'>;

/** First protocol version with verification. Older agents would not verify. */
const verifiesSince = 2;
/** First protocol version with `only_if: { exists }`. Older agents would ignore the condition and apply the resource. */
const conditionsSince = 6;
/** First protocol version with the other forms of `only_if`. Older agents refuse the message. */
const combinedConditionsSince = 7;
/** First protocol version with `immediate_on`. Older agents would reload the service too late. */
const immediateSince = 7;
/** First protocol version with service checks. Older agents refuse the fields. */
const confirmationsSince = 7;
/** First protocol version with contents that agents fetch. Older agents refuse the fields `source` and `purge`. */
const sourcesSince = 7;

/** First protocol version with the end of the maintenance window. Older agents refuse the message. */
const windowsSince = 7;

/**
 * Returns an agent's next operation, and whether another operation is queued after it. Returns a dispatched operation
 * again if the agent has not accepted it; the agent's journal recognizes duplicates.
 * @param version protocol version of the agent
 * @returns null if no operation is queued, an operation is running, or the agent is not approved
 */
export async function nextOperation(
  context: Context,
  sources: DispatchSources,
  nodeId: string,
  version: number,
): Promise<{ operation: OperationMessage; more: boolean } | null> {
  const { cache, markOnly } = sources;
  const queued = cache.takeQueued(nodeId);
  const mark = queued && (await markOnly(queued.operation_id));
  if (queued && mark) {
    const marked = { ...queued, snapshot_operation_id: null, dispatched_at: null };
    const sent = await loaded(context, sources, marked, null, version, [queued.payload_digest, mark.applied]);
    if (typeof sent === 'object') return { operation: sent, more: false };
  }
  for (;;) {
    const [row, ...behind] = await openRows(context, nodeId);
    if (!row || row.status === 'running') return null;
    const plan = row.plan_id === null ? null : await recheckPlan(context, row, row.plan_id);
    if (plan !== null && 'stale' in plan) {
      await endUnresolved(context, row, plan.stale, row.dispatched_at === null);
      continue;
    }
    const snapshot = await mayBeSent(context, row);
    if (snapshot === false) return null;
    const marked = { ...row, modules: fromJson(row.modules), snapshot_operation_id: snapshot };
    const sent = await loaded(context, sources, marked, plan, version);
    if (sent === 'sent already') return null;
    if (sent !== 'ended') return { operation: sent, more: behind.length > 0 };
  }
}

/**
 * Builds the message for a marked operation.
 * @param digests digests of the desired state and of the last applied state, if known
 * @returns the message; `ended` if the operation could not be sent and was ended; `sent already` if its payload was
 * deleted but the agent may have received it
 */
async function loaded(
  context: Context,
  { cache, payloads }: DispatchSources,
  row: Marked,
  plan: { digest: string; secrets: SecretVersions } | null,
  version: number,
  digests?: readonly (string | null)[],
): Promise<OperationMessage | 'ended' | 'sent already'> {
  const { operation_id, node_id, kind, modules, snapshot_operation_id, dispatched_at } = row;
  const found = await payloads.load(row.payload_digest, node_id);
  const verify = kind === 'apply' && found.ok && found.verify.length > 0 ? { verify: found.verify } : {};
  const unknown = found.ok ? unknownTo(version, 'verify' in verify, found.resources) : null;
  const payload = unknown === null ? found : await tooOld(context, row, version, unknown);
  if (!payload.ok) {
    // Only the agent can end a dispatched operation. Its next hello reveals whether the message was lost.
    if (dispatched_at !== null) return 'sent already';
    await endUnresolved(context, row, payload.error);
    return 'ended';
  }
  const changed = plan === null || dispatched_at !== null ? undefined : changedSince(plan.secrets, payload.secrets);
  if (changed !== undefined) {
    await endUnresolved(context, row, stalePlanError(`the secret ${changed} has changed since the plan`));
    return 'ended';
  }
  const sending = reportedOf(row, dispatched_at ?? seconds(context.now()));
  // Reports of a drift check refer to an earlier operation, whose desired state is read when the reports arrive.
  if (kind !== 'drift') {
    if (dispatched_at === null)
      cache.sent(sending, await withEarlierSecrets(context, payloads, operation_id, payload.secrets, digests));
    // An earlier dispatch may have contained other values, so it is unknown which secret values the agent received.
    else if (!cache.find(operation_id)) cache.sent(sending, null);
  }
  const windowEnd = payload.resources.some(({ body }) => 'window_only' in body && body.window_only === true)
    ? coveredUntil(await openWindows(context), await getAgent(context, node_id))
    : null;
  return {
    type: 'operation',
    operation_id,
    kind,
    modules: [...modules],
    resources: payload.resources,
    keep_modules: payload.keep_modules,
    snapshot_operation_id,
    ...(plan === null ? {} : { plan_digest: plan.digest }),
    ...verify,
    ...(windowEnd === null ? {} : { window_ends_at: windowEnd }),
  };
}

/** Returns the same data as {@link reportedOperation}, without a query. */
const reportedOf = (row: Marked, dispatched_at: number): ReportedOperation => ({
  operation_id: row.operation_id,
  node_id: row.node_id,
  kind: row.kind,
  status: 'queued',
  requested_by: row.requested_by,
  run_id: row.run_id,
  trigger: row.trigger,
  snapshot_operation_id: row.snapshot_operation_id,
  payload_digest: row.payload_digest,
  revisions: row.revisions,
  dispatched_at,
  label: row.label,
});

/** Returns the feature that an agent with this protocol version does not support; null if it supports all of them. */
function unknownTo(version: number, verifies: boolean, resources: readonly ResolvedResource[]): string | null {
  if (verifies && version < verifiesSince) return 'a `verify` section';
  if (version < conditionsSince && resources.some(({ only_if }) => only_if !== undefined))
    return 'a resource with `only_if`';
  if (version < combinedConditionsSince && resources.some(({ only_if = { exists: '' } }) => !('exists' in only_if)))
    return 'an `only_if` with `command`, `not`, or a list';
  if (version < immediateSince && resources.some(({ immediate_on }) => immediate_on !== undefined))
    return 'a trigger with `immediately`';
  if (version < confirmationsSince && resources.some(({ body }) => 'confirm_port' in body || 'confirm_command' in body))
    return 'a service with `confirm_port` or `confirm_command`';
  if (version < windowsSince && resources.some(({ body }) => 'window_only' in body))
    return 'a reboot with `window_only`';
  if (version < sourcesSince && resources.some(({ body }) => 'source' in body)) return 'a resource with `source`';
  if (version < sourcesSince && resources.some(({ body }) => 'purge' in body)) return 'a directory with `purge`';
  return null;
}

async function tooOld({ db }: Context, { node_id, label }: Marked, version: number, unknown: string) {
  const agent = await db.get(agentById, { node_id });
  const release = agent === undefined ? '' : `version ${agent.agent_version}, `;
  const error = `a module has ${unknown}, and the agent ${label} (${release}protocol ${version}) does not support it; upgrade the agent, then request the operation again`;
  return { ok: false, error } as const;
}

/**
 * Marks an operation as dispatched before it is sent. After that, only the agent's report ends it, even if this
 * process stops.
 * @returns false if, concurrently, the operation was canceled, the agent was rejected, or another process admitted the
 *   agent; otherwise, for a drift check, the newest snapshot, because an apply may have ended since the request
 */
async function mayBeSent({ db, now, incarnation }: Context, row: Row): Promise<string | null | false> {
  const { operation_id, node_id } = row;
  if (row.dispatched_at !== null) return row.agent_status === 'approved' && row.snapshot_operation_id;
  const snapshot =
    row.kind === 'drift' ? ((await db.get(agentState, { node_id }))?.snapshot_operation_id ?? null) : null;
  const mark = { operation_id, node_id, now: seconds(now()), incarnation };
  const statements: Statement[] = [statement(markDispatched, mark, { expect: 'changed', else: 'operation_finished' })];
  if (snapshot !== row.snapshot_operation_id)
    statements.push(statement(setSnapshot, { operation_id, snapshot_operation_id: snapshot }));
  try {
    await db.write({ name: 'operations/dispatch', statements });
    return snapshot;
  } catch (error) {
    if (error instanceof MusterError && error.code === 'operation_finished') return false;
    throw error;
  }
}

/**
 * Checks again that the desired state matches the plan, because it may have changed while the apply was queued. The
 * agent compares only its machine's state.
 * @returns the plan's digest and the versions of its secrets; or, if the plan is stale, the error of the operation
 */
async function recheckPlan(
  context: Context,
  row: Row,
  planId: string,
): Promise<{ digest: string; secrets: SecretVersions } | { stale: string }> {
  try {
    const plan = await requirePlan(context, planId, row.node_id);
    if (row.dispatched_at === null) await requirePlanStillValid(context, plan);
    return { digest: plan.plan_digest ?? '', secrets: versionsIn(plan) };
  } catch (error) {
    if (!(error instanceof MusterError) || error.kind.status >= 500) throw error;
    return { stale: stalePlanError(error.message) };
  }
}

/** Finds a secret that changed after the comparison with the plan and before its value was read. */
function changedSince(planned: SecretVersions, sent: readonly SentSecret[]): string | undefined {
  const versions = new Map(sent.map(({ name, version }) => [name, version]));
  return Object.keys(planned).find((name) => (versions.get(name) ?? 0) !== planned[name]);
}

/**
 * Ends an operation that cannot be sent.
 * @param undispatched whether to end the operation only if it was not dispatched
 */
async function endUnresolved(
  context: Context,
  row: EndingOperation & { label: string },
  error: string,
  undispatched = false,
): Promise<void> {
  const ending = { status: 'failed', error, summary: null, startedAt: null } as const;
  try {
    const statements = endStatements(context, row, ending, systemActor, row.label, undispatched);
    await context.db.write({ name: 'operations/unresolved', statements });
    announceEnd(context, row, 'failed');
  } catch (error) {
    ignoreFinished(error);
  }
}
