import { MusterError, type Summary } from '@muster/protocol';
import type { Agent, Run, RunEntry } from '@muster/protocol/http';
import { fromJson, type JsonText, toJson } from '../../store/json-text.ts';
import { jsonRows } from '../../store/params.ts';
import { deleteDriftBeside } from '../../store/queries/drift-states.ts';
import { insertRun, insertRunBasis, insertRunResults, runById, runResultPage, runs } from '../../store/queries/runs.ts';
import { statement } from '../../store/transaction.ts';
import { agentsWithIds, approvedMatching, requireSelector } from '../agents/agents.ts';
import { audited } from '../audit/audit.ts';
import { listAssignments, requireAssignment } from '../modules/assignments.ts';
import { pageBytes } from '../operations/operation-results.ts';
import { untilFound, type Waiting } from '../operations/operation-waiting.ts';
import { maxWaitMs } from '../operations/operations.ts';
import { StalePlan } from '../operations/stale-plan.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { auditScope } from '../shared/drift-scope.ts';
import { mapPage, type Page, type PageRequest, readPage } from '../shared/page.ts';
import { optionsOf, type RunBasis, type RunRequest } from './run-basis.ts';
import type { RunConductor } from './run-conductor.ts';
import { countOutcomes, noOutcomes } from './run-outcomes.ts';

/** Runs: a plan or apply of an assignment on every matching agent, or of modules on named agents. */

/** The subject of a run: the name of an assignment, or agents and modules. */
export type RunAbout = string | { node_ids: readonly string[]; modules: readonly string[] };

/** Maximum number of rows written by one statement. */
const rowsAtOnce = 500;

/**
 * Records a run's agents and terms, then starts the first agents. If this process stops, the run continues from its
 * rows.
 * @returns the run's id
 * @throws MusterError assignment_not_found, assignment_audits, agent_not_found, module_not_found, run_not_found,
 * invalid_input, plan_stale
 */
export async function startRun(
  context: Context,
  conductor: RunConductor,
  actor: Actor,
  about: RunAbout,
  request: RunRequest,
): Promise<string> {
  const { db, presence } = context;
  const assignment = typeof about === 'string' ? await requireAssignment(context, about) : null;
  const modules = typeof about === 'string' ? [] : [...new Set(about.modules)];
  if (request.plan_run_id !== undefined)
    await requirePlanRun(context, request.plan_run_id, assignment?.name ?? modules, request.kind);
  if (request.kind === 'apply' && assignment?.mode === 'audit') throw new MusterError('assignment_audits');
  const matching =
    assignment === null
      ? await requireAgents(context, (about as Exclude<RunAbout, string>).node_ids)
      : await approvedMatching(context, requireSelector(assignment.selector, '/selector'));
  // Puts connected agents first, so that canaries are connected if possible.
  const [there, away] = [true, false].map((is) =>
    matching.filter(({ node_id }) => presence.isConnected(node_id) === is),
  );
  const rows = [...(there ?? []), ...(away ?? [])].map(({ node_id }, position) => ({ node_id, position }));
  const assignments = await listAssignments(context);
  // Checks the modules once, so that a missing module fails the request rather than each agent.
  await context.documents.load(modules);
  const { revisions, requires } = await context.documents.newest([
    ...new Set([...assignments.flatMap((each) => each.modules), ...modules]),
  ]);
  const basis: RunBasis = {
    ...{ assignment, modules, assignments },
    revisions: Object.fromEntries(revisions),
    requires: Object.fromEntries(requires),
  };
  const options = optionsOf(request, rows.length);
  const runId = context.newId();
  const now = seconds(context.now());
  await db.write({
    name: `runs/start ${request.kind}`,
    statements: [
      statement(insertRun, {
        run_id: runId,
        assignment: assignment?.name ?? null,
        kind: request.kind,
        status: rows.length > 0 ? 'running' : 'succeeded',
        started_at: now,
        finished_at: rows.length > 0 ? null : now,
        requested_by: actor.id,
        options: toJson({ ...options }),
      }),
      statement(insertRunBasis, { run_id: runId, basis: toJson(basis) }),
      ...inParts(rows).map((part) => statement(insertRunResults, { run_id: runId, rows: jsonRows(part) })),
      // Deletes the drift of agents that no longer match the assignment, because no later check of the assignment would
      // clear it.
      ...(assignment?.mode === 'audit'
        ? [statement(deleteDriftBeside, { scope: auditScope(assignment.name), run_id: runId })]
        : []),
      audited(context, {
        type: 'run.started',
        actor,
        target: { type: 'run', id: runId, name: assignment?.name ?? '' },
        summary: `${request.kind}${assignment === null ? '' : ` of ${assignment.name}`} started on ${rows.length === 1 ? '1 agent' : `${rows.length} agents`}`,
        metadata: { agents: rows.length, ...(assignment === null ? { modules } : {}), ...options },
      }),
    ],
  });
  if (rows.length > 0) await conductor.begin(runId);
  return runId;
}

/**
 * Returns the named agents.
 * @throws MusterError agent_not_found, with the name of the first missing agent
 */
async function requireAgents(context: Context, nodeIds: readonly string[]): Promise<Agent[]> {
  const ids = [...new Set(nodeIds)];
  const found = new Map<string, Agent>();
  for (let from = 0; from < ids.length; from += rowsAtOnce)
    for (const [id, agent] of await agentsWithIds(context, ids.slice(from, from + rowsAtOnce))) found.set(id, agent);
  return ids.map((id) => {
    const agent = found.get(id);
    if (agent === undefined)
      throw new MusterError('agent_not_found', `there is no agent ${JSON.stringify(id.slice(0, 64))}`);
    return agent;
  });
}

/**
 * Checks the plan to which an apply is bound.
 * @param of what to apply: an assignment, or modules on named agents
 * @throws MusterError run_not_found; invalid_input unless the run is a plan for the same subject, and `kind` is an
 *   apply; StalePlan if the plan has not ended
 */
async function requirePlanRun(
  context: Context,
  planRunId: string,
  of: string | readonly string[],
  kind: RunRequest['kind'],
) {
  const fault = (message: string) =>
    new MusterError('invalid_input', `plan_run_id ${message}`, [{ path: '/plan_run_id', message }]);
  if (kind === 'plan') throw fault('is allowed only for an apply');
  const run = await findRow(context, planRunId);
  if (!run) throw new MusterError('run_not_found', `there is no run ${JSON.stringify(planRunId.slice(0, 64))}`);
  const assignment = typeof of === 'string' ? of : null;
  if (run.kind !== 'plan' || run.assignment !== assignment)
    throw fault(`must be a plan of ${assignment ?? 'named agents'}`);
  if (run.finished_at === null) throw new StalePlan('the plan has not ended yet', run.started_at);
}

const inParts = <T>(rows: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(rows.length / rowsAtOnce) }, (_, i) =>
    rows.slice(i * rowsAtOnce, (i + 1) * rowsAtOnce),
  );

/** Waits for a run to end. A halted or canceled run ends once none of its operations is open. */
export async function awaitRun(
  context: Context,
  waiting: Waiting,
  runId: string,
  signal?: AbortSignal,
): Promise<{ run: RunInPages; ended: boolean }> {
  const look = async () => ((await findRow(context, runId))?.finished_at === null ? null : true);
  await untilFound(context, waiting, runId, look, context.now() + maxWaitMs, signal);
  const run = await readRun(context, runId);
  return { run, ended: run.finished_at !== null };
}

type Row = NonNullable<Awaited<ReturnType<typeof findRow>>>;
const findRow = ({ db }: Context, runId: string) => db.get(runById, { run_id: runId });

const toEntry = (row: Row): Omit<Run, 'results'> => ({
  run_id: row.run_id,
  assignment: row.assignment,
  kind: row.kind === 'plan' ? 'plan' : 'apply',
  status: row.status,
  started_at: row.started_at,
  finished_at: row.finished_at,
  requested_by: row.requested_by,
});

type RunResult = Run['results'][number];

/** A run whose results are streamed, in the order of its agents. */
export interface RunInPages extends Omit<Run, 'results'> {
  results: AsyncIterable<readonly JsonText<RunResult>[]>;
}

/**
 * Reads a run.
 * @throws MusterError run_not_found
 */
export async function readRun(context: Context, runId: string): Promise<RunInPages> {
  const row = await findRow(context, runId);
  if (!row) throw new MusterError('run_not_found', `there is no run ${JSON.stringify(runId.slice(0, 64))}`);
  return { ...toEntry(row), results: resultTexts(context, runId) };
}

async function* resultTexts({ db }: Context, runId: string): AsyncGenerator<JsonText<RunResult>[]> {
  for (let after = ''; ; ) {
    const rows = await db.all(runResultPage, { run_id: runId, after, bytes: pageBytes });
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((result) =>
      toJson<RunResult>({
        node_id: result.node_id,
        name: result.name,
        operation_id: result.operation_id,
        status: result.operation_status ?? (result.status === 'waiting' ? 'queued' : result.status),
        error: result.operation_error ?? result.error,
        summary: result.summary === null ? null : fromJson<Summary>(result.summary),
      }),
    );
    after = last.node_id;
  }
}

export interface RunFilter {
  status?: Run['status'] | undefined;
  kind?: Run['kind'] | undefined;
  assignment?: string | undefined;
  /** `true` lists only the newest run of each assignment among the runs that match the other filters. */
  latest?: 'true' | 'false' | undefined;
}

/** Lists runs, newest first. Counts the outcomes of runs that have not ended; ended runs have stored counts. */
export async function listRuns(context: Context, filter: RunFilter & PageRequest): Promise<Page<RunEntry>> {
  const { db } = context;
  const { status, kind, assignment, latest } = filter;
  const query = runs({
    status: status !== undefined,
    kind: kind !== undefined,
    assignment: assignment !== undefined,
    latest: latest === 'true',
  });
  const page = await readPage(filter, (part) => db.all(query, { status, kind, assignment, ...part }));
  const uncounted = page.items.filter(({ succeeded }) => succeeded === null).map(({ run_id }) => run_id);
  const counts = await countOutcomes(context, uncounted);
  return mapPage(page, (row) => {
    const { succeeded, failed, cancelled, skipped } = row;
    const isOpen = succeeded === null || failed === null || cancelled === null || skipped === null;
    return {
      ...toEntry(row),
      outcomes: isOpen
        ? (counts.get(row.run_id) ?? noOutcomes)
        : { ...noOutcomes, succeeded, failed, cancelled, skipped },
    };
  });
}
