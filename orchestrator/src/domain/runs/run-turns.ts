import { MusterError } from '@muster/protocol';
import type { Agent } from '@muster/protocol/http';
import type { ModuleDocument } from '@muster/protocol/module';
import type { Hint } from '../../bus/bus.ts';
import { toJson } from '../../store/json-text.ts';
import { jsonRows } from '../../store/params.ts';
import { failStranded, insertRunOperations, putRunResults, runIsRunning } from '../../store/queries/runs.ts';
import { statement } from '../../store/transaction.ts';
import { agentsWithIds } from '../agents/agents.ts';
import { dependsOnWindow, desiredModules, type EncodedPayload } from '../modules/desired-set.ts';
import { recentLookups } from '../modules/lookups.ts';
import { createSharedResolution } from '../modules/shared-resolution.ts';
import { coveredUntil, covers, openWindows } from '../modules/windows.ts';
import { passOpenOperations } from '../operations/operation-order.ts';
import { expiryOf } from '../operations/operations.ts';
import { keepPayload } from '../operations/payloads.ts';
import { plansIn, requireEqualDesiredSet, staleIfUnresolved } from '../operations/plan-binding.ts';
import { errorTextOf } from '../operations/stale-plan.ts';
import { createSecretAccess } from '../secrets/secret-access.ts';
import { type Context, seconds } from '../shared/context.ts';
import { type ModuleDocuments, revisionsOf } from '../shared/module-documents.ts';
import type { RunTerms } from './run-basis.ts';
import type { Turn } from './run-track.ts';

/** Starts agents in a run: resolves their desired states, and queues the operations, many in one transaction. */

/** Maximum number of characters of payloads in one transaction. The last payload may exceed it. */
const maxPayloadLength = 8 * 1024 * 1024;

const offline = 'the agent is offline';

type Payloads = Map<string, EncodedPayload>;

/** Cached resolutions of runs in progress, each with fixed module revisions. */
const resolutions = new WeakMap<RunTerms, ReturnType<typeof createSharedResolution>>();

function resolutionOf(terms: RunTerms): ReturnType<typeof createSharedResolution> {
  const resolve = resolutions.get(terms) ?? createSharedResolution();
  resolutions.set(terms, resolve);
  return resolve;
}

/**
 * Time for which a run reuses the values of a lookup, in milliseconds. Without reuse, a run with small batches would
 * read all agents for each batch.
 */
const maxLookupAgeMs = 60_000;

interface TurnOperation {
  operation_id: string;
  node_id: string;
  modules: readonly string[];
  payload_digest: string;
  plan_id: string | null;
  secret_versions: string | null;
  revisions: string | null;
  expires_at: number;
}

/**
 * Starts agents. The rows are authoritative: an agent that has had its turn keeps its result, and a halted or
 * canceled run starts no agents.
 * @param wave agents to queue an operation for, and agents to report as offline
 * @returns the results, which cover only some agents if payloads are large; and whether the rows differ from the state
 *   in memory, so that the run must be reloaded
 * @throws MusterError operation_finished if the run does not continue; storage_unavailable if the database fails, in
 * which case no agent has started
 */
export async function giveTurns(
  context: Context,
  terms: RunTerms,
  wave: { queue: readonly string[]; report: readonly string[] },
): Promise<{ turns: Turn[]; mustReload: boolean }> {
  const turns: Turn[] = wave.report.map((node_id) => failed(node_id, offline));
  const operations: TurnOperation[] = [];
  const payloads: Payloads = new Map();
  const agents = await agentsWithIds(context, wave.queue);
  const windows = await openWindows(context);
  const plans = terms.plan_run_id === null ? null : await plansIn(context, terms.plan_run_id, wave.queue);
  const load = loader(context.documents, terms);
  const resolveSet = resolutionOf(terms);
  const lookUp = recentLookups(context, terms, maxLookupAgeMs);
  const access = createSecretAccess(context);
  const note = (agent: Agent) =>
    terms.kind === 'apply' && terms.assignment?.window_only && !covers(windows, agent)
      ? 'no maintenance window is open for the agent, so this assignment is not applied'
      : null;
  const expiresAt = seconds(context.now()) + terms.ttl;
  await passOpenOperations(context, wave.queue);
  let length = 0;
  for (const node_id of wave.queue) {
    // Yields to requests regularly, because resolving takes a lot of CPU time.
    if (turns.length % 100 === 99) await new Promise((resolve) => setImmediate(resolve));
    if (length > maxPayloadLength) break;
    try {
      const agent = agents.get(node_id);
      if (agent?.status !== 'approved') throw new MusterError('agent_not_approved', 'the agent is no longer approved');
      const windowEnd = coveredUntil(windows, agent);
      const desired = desiredModules(terms.assignments, agent, {
        modules: terms.modules,
        requires: terms.requires,
        windowOpen: windowEnd !== null,
        // A plan always includes the run's assignment. An apply includes it only in mode `enforce` and, if it is
        // window-only, only inside a window.
        ...(terms.kind === 'plan' && terms.assignment !== null ? { including: terms.assignment.name } : {}),
      });
      const resolve = async () => {
        const { documents, revisions } = await load(desired.modules);
        const set = resolveSet(documents, desired, agent, await lookUp(documents));
        return { ...set, revisions, secrets: await access.allow(set.payload, agent) };
      };
      const plan = plans?.get(node_id) ?? null;
      const {
        payload: resolved,
        encoded: payload,
        revisions,
        secrets,
      } = await (plan === null ? resolve() : staleIfUnresolved(plan, resolve));
      if (plans !== null)
        await requireEqualDesiredSet(context, plan, { digest: payload.digest, secrets, lookups: resolved.lookups });
      if (!payloads.has(payload.digest)) {
        payloads.set(payload.digest, payload);
        length += payload.text.length;
      }
      const operation_id = context.newId();
      operations.push({
        operation_id,
        node_id,
        modules: desired.modules,
        payload_digest: payload.digest,
        plan_id: plan?.operation_id ?? null,
        expires_at: expiryOf(terms.kind, expiresAt, dependsOnWindow(terms.assignments, agent) ? windowEnd : null),
        secret_versions: terms.kind === 'plan' ? toJson(secrets) : null,
        revisions: terms.kind === 'apply' ? revisions : null,
      });
      turns.push({ node_id, operation_id, status: 'queued', error: note(agent) });
    } catch (error) {
      // An internal failure is not the agent's outcome. The agent starts after the failure is fixed.
      if (!(error instanceof MusterError) || error.kind.status >= 500) throw error;
      turns.push(failed(node_id, errorTextOf(error)));
    }
  }
  const mustReload = await write(context, terms, turns, operations, payloads);
  for (const operation of operations) context.bus.publish(workOf(context, terms, operation, agents));
  return { turns, mustReload };
}

/**
 * Gives up on agents that did not connect before the run's deadline.
 * @throws MusterError operation_finished if the run does not continue
 */
export async function expireTurns(context: Context, terms: RunTerms, nodeIds: readonly string[]): Promise<Turn[]> {
  const error = 'the agent did not connect in time';
  const turns = nodeIds.map((node_id): Turn => ({ node_id, operation_id: null, status: 'expired', error }));
  await write(context, terms, turns, [], new Map());
  return turns;
}

/** Returns `audit` if this is a plan of an audit assignment, whose findings are recorded as drift; otherwise, null. */
const triggerOf = ({ assignment, kind }: Pick<RunTerms, 'assignment' | 'kind'>): 'audit' | null =>
  kind === 'plan' && assignment?.mode === 'audit' ? 'audit' : null;

const failed = (node_id: string, error: string): Turn => ({ node_id, operation_id: null, status: 'failed', error });

/**
 * Writes the agents' results.
 * @returns whether an operation was not created because its agent was rejected or got its turn concurrently
 */
async function write(
  context: Context,
  { runId, kind, assignment, modules: requested, requestedBy }: RunTerms,
  turns: readonly Turn[],
  operations: readonly TurnOperation[],
  payloads: Payloads,
): Promise<boolean> {
  const stranded = statement(failStranded, {
    operation_ids: operations.map(({ operation_id }) => operation_id),
    error: 'the agent is no longer approved',
  });
  const made = statement(insertRunOperations, {
    run_id: runId,
    kind,
    requested_by: requestedBy,
    created_at: seconds(context.now()),
    trigger: triggerOf({ assignment, kind }),
    requested_modules: toJson([...requested]),
    rows: jsonRows(operations.map(({ modules, ...operation }) => ({ ...operation, modules: toJson(modules) }))),
  });
  const result = await context.db.write({
    name: 'runs/queue',
    statements: [
      statement(runIsRunning, { run_id: runId }, { expect: 'row', else: 'operation_finished' }),
      ...[...payloads.values()].flatMap(keepPayload),
      made,
      statement(putRunResults, { run_id: runId, rows: jsonRows(turns.map((turn) => ({ ...turn }))) }),
      stranded,
    ],
  });
  return result.of(stranded).changes > 0 || result.of(made).changes !== operations.length;
}

/**
 * Returns the hint for an operation. If the agent is connected to this process, the hint contains the operation, so
 * that it need not be read.
 */
function workOf(
  { presence }: Pick<Context, 'presence'>,
  terms: RunTerms,
  { operation_id, node_id, modules, payload_digest, plan_id, revisions }: TurnOperation,
  agents: ReadonlyMap<string, Agent>,
): Hint {
  const agent = agents.get(node_id);
  if (agent === undefined || plan_id !== null || !presence.isConnected(node_id)) return { type: 'work', node_id };
  const operation = {
    operation_id,
    node_id,
    kind: terms.kind,
    modules,
    requested_by: terms.requestedBy,
    run_id: terms.runId,
    trigger: triggerOf(terms),
    payload_digest,
    revisions,
    label: agent.name ?? agent.initial_hostname,
  };
  return { type: 'work', node_id, operation };
}

/**
 * Returns a function that loads modules at the revisions that the request specifies. Loads modules, and serializes
 * their revisions, only once for all agents with the same modules.
 */
function loader(documents: ModuleDocuments, { revisions }: RunTerms) {
  const loaded = new Map<string, { documents: readonly ModuleDocument[]; revisions: string }>();
  return async (modules: readonly string[]) => {
    const key = JSON.stringify(modules);
    const found = loaded.get(key) ?? {
      documents: await documents.load(modules, revisions),
      revisions: toJson(revisionsOf(modules, revisions)),
    };
    loaded.set(key, found);
    return found;
  };
}
