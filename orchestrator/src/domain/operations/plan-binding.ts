import { MusterError, stalePlanReason } from '@muster/protocol';
import type { OperationEntry } from '@muster/protocol/http';
import { fromJson } from '../../store/json-text.ts';
import { planById, plansOfRun } from '../../store/queries/operations/operations.ts';
import { payloadByDigest } from '../../store/queries/operations/payloads.ts';
import type { Payload } from '../modules/desired-set.ts';
import type { Context } from '../shared/context.ts';
import { StalePlan } from './stale-plan.ts';

/** The plan that an apply is bound to. The apply makes exactly the planned changes, or fails. */
export interface BoundPlan {
  operation_id: string;
  status: string;
  created_at: number;
  payload_digest: string | null;
  /** Digest that the agent reported; null if the agent does not support plan digests. */
  plan_digest: string | null;
  secret_versions: string | null;
}

/** The parts of a desired set that are compared with the plan. */
export interface DesiredSetVersions {
  /** Digest of the resolved resources, without the values of secrets. */
  digest: string;
  secrets: SecretVersions;
  lookups: Payload['lookups'];
}

/** Versions of secrets by name. */
export type SecretVersions = Readonly<Record<string, number>>;

/** Returns the versions that the secrets had when the plan was requested. */
export const versionsIn = ({ secret_versions }: Pick<BoundPlan, 'secret_versions'>): SecretVersions =>
  secret_versions === null ? {} : (fromJson(secret_versions) as SecretVersions);

/**
 * Checks that the current desired state equals the planned one. The agent compares its machine's state.
 * @throws StalePlan
 */
export async function requireEqualDesiredSet(
  context: Pick<Context, 'db'>,
  plan: BoundPlan | null,
  now: DesiredSetVersions,
): Promise<void> {
  const stale = (detail: string) => new StalePlan(detail, plan?.created_at ?? null);
  if (plan === null) throw stale('the planned run does not include this agent');
  if (plan.status !== 'succeeded')
    throw stale(`the plan has ${plan.status === 'queued' || plan.status === 'running' ? 'not ended' : plan.status}`);
  if (plan.plan_digest === null) throw stale('the agent’s version does not report plan digests; upgrade the agent');
  if (plan.payload_digest !== now.digest) throw stale(await causeOf(context, plan, now));
  const planned = versionsIn(plan);
  const names = new Set([...Object.keys(planned), ...Object.keys(now.secrets)]);
  for (const name of names)
    if (planned[name] !== now.secrets[name]) throw stale(`the secret ${name} has changed since the plan`);
}

/** Explains why the desired state differs from the planned one. Names a lookup whose result has changed. */
async function causeOf(
  { db }: Pick<Context, 'db'>,
  { payload_digest }: BoundPlan,
  now: DesiredSetVersions,
): Promise<string> {
  const changed = 'the agent’s desired state has changed since the plan';
  if (now.lookups === undefined || payload_digest === null) return changed;
  const row = await db.get(payloadByDigest, { digest: payload_digest });
  const planned = row === undefined ? {} : ((fromJson(row.payload) as Payload).lookups ?? {});
  const name = Object.keys(now.lookups).find(
    (each) => Object.hasOwn(planned, each) && planned[each] !== now.lookups?.[each],
  );
  return name === undefined
    ? changed
    : `the lookup ${name} has changed since the plan, because it now finds other agents or values; plan again`;
}

/** Returns the plans of the specified agents in a run, by node id. */
export async function plansIn(
  { db }: Context,
  runId: string,
  nodeIds: readonly string[],
): Promise<Map<string, BoundPlan>> {
  const rows = await db.all(plansOfRun, { run_id: runId, node_ids: [...nodeIds] });
  return new Map(rows.map((row) => [row.node_id, row]));
}

/**
 * Returns a plan of an agent, with any status.
 * @throws MusterError operation_not_found
 */
export async function requirePlan({ db }: Context, planId: string, nodeId: string) {
  const plan = await db.get(planById, { operation_id: planId });
  if (plan?.node_id !== nodeId || plan.kind !== 'plan')
    throw new MusterError('operation_not_found', `the agent has no plan ${JSON.stringify(planId.slice(0, 64))}`);
  return plan;
}

/**
 * Returns the modules that were requested for the plan.
 * @throws MusterError invalid_input if the request lists other modules
 */
export function modulesOfPlan(
  plan: Awaited<ReturnType<typeof requirePlan>>,
  named: readonly string[],
): readonly string[] {
  const planned = plan.requested_modules === null ? [] : fromJson(plan.requested_modules);
  const same = named.length === planned.length && named.every((name, i) => name === planned[i]);
  if (named.length > 0 && !same) {
    const message = 'must be empty or list the same modules as the plan';
    throw new MusterError('invalid_input', `modules ${message}`, [{ path: '/modules', message }]);
  }
  return planned;
}

/**
 * Calls `work`. Reports a desired state that can no longer be resolved as a change.
 * @throws StalePlan
 */
export async function staleIfUnresolved<T>(
  { created_at }: Pick<BoundPlan, 'created_at'>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof MusterError && error.kind.status < 500) throw new StalePlan(error.message, created_at);
    throw error;
  }
}

/** Returns the refusal of an apply that `endedStale` recognizes, for the request that is waiting for the apply. */
export async function refusalOf(
  { db }: Pick<Context, 'db'>,
  { plan_id, error }: Pick<OperationEntry, 'plan_id' | 'error'>,
): Promise<StalePlan> {
  const plan = plan_id === null ? undefined : await db.get(planById, { operation_id: plan_id });
  return new StalePlan(stalePlanReason(error) || undefined, plan?.created_at ?? null);
}
