import { MusterError, type Summary } from '@muster/protocol';
import type { Agent, Assignment, Run } from '@muster/protocol/http';
import type { ModuleDocument } from '@muster/protocol/module';
import { fromJson, toJson } from '../store/json-text.ts';
import { putPayload } from '../store/operations.ts';
import { jsonRows } from '../store/params.ts';
import {
  failStranded,
  failUndecided,
  insertRun,
  insertRunOperations,
  putRunResults,
  runById,
  runResults,
  runs,
} from '../store/runs.ts';
import { statement } from '../store/unit.ts';
import { approvedMatching, requireSelector } from './agents.ts';
import { listAssignments, requireAssignment } from './assignments.ts';
import { audited } from './audit.ts';
import { type Actor, type Context, seconds } from './context.ts';
import { desiredModules, encodePayload, resolvePayload } from './desired-set.ts';
import type { ModuleDocuments } from './modules.ts';
import { untilFound, type Waiting } from './operation-waiting.ts';
import { defaultTtlSecs, longestWaitMs } from './operations.ts';
import { settleRun } from './run-end.ts';

/** Runs: one assignment applied or planned on every agent it matches. */

export interface RunRequest {
  kind: 'apply' | 'plan';
  offline?: 'report' | 'queue' | undefined;
  ttl?: number | undefined;
}

/** Agents decided on, and rows written, at one time. */
const agentsAtOnce = 500;
/** A part of a run is written before its payloads come to more than this. In characters. */
const partLength = 8 * 1024 * 1024;

/**
 * Writes down whom the run is about, then decides for agent after agent and queues their operations, part by part:
 * neither memory nor a unit grows with the fleet. No part is open without being in the rows, so the run cannot end
 * before the last of them.
 * @returns the run's id, when everything is queued
 * @throws MusterError assignment_not_found, assignment_audits, module_not_found
 */
export async function startRun(
  context: Context,
  documents: ModuleDocuments,
  actor: Actor,
  assignmentName: string,
  request: RunRequest,
): Promise<string> {
  const { db } = context;
  const assignment = await requireAssignment(context, assignmentName);
  if (request.kind === 'apply' && assignment.mode === 'audit') throw new MusterError('assignment_audits');
  const agents = await approvedMatching(context, requireSelector(assignment.selector, '/selector'));
  const runId = context.newId();
  const now = seconds(context.now());
  const undecided = agents.map(({ node_id }) => ({ node_id, operation_id: null, status: 'queued', error: null }));
  await db.write({
    name: `runs/start ${request.kind}`,
    statements: [
      statement(insertRun, {
        run_id: runId,
        assignment: assignment.name,
        kind: request.kind,
        status: agents.length > 0 ? 'running' : 'succeeded',
        started_at: now,
        finished_at: agents.length > 0 ? null : now,
        requested_by: actor.id,
        options: toJson({ offline: request.offline ?? 'report' }),
      }),
      ...inParts(undecided).map((rows) => statement(putRunResults, { run_id: runId, rows: jsonRows(rows) })),
      audited(context, {
        type: 'run.started',
        actor,
        target: { type: 'run', id: runId, name: assignment.name },
        summary: `${request.kind} of ${assignment.name} on ${agents.length} agents`,
        metadata: { agents: agents.length },
      }),
    ],
  });
  const assignments = await listAssignments(context);
  // Read once for all agents of the same modules: a run is of one revision of each, whatever is uploaded meanwhile.
  const loaded = new Map<string, readonly ModuleDocument[]>();
  const load = async (modules: readonly string[]) => {
    const key = JSON.stringify(modules);
    const found = loaded.get(key) ?? (await documents.load(modules));
    loaded.set(key, found);
    return found;
  };
  const run = { runId, load, assignment, assignments, request, requestedBy: actor.id, now };
  for (let start = 0; start < agents.length; )
    start += await queuePart(context, run, agents.slice(start, start + agentsAtOnce));
  if (agents.length > 0) await settleRun(context, runId);
  return runId;
}

interface Part {
  runId: string;
  load: (modules: readonly string[]) => Promise<readonly ModuleDocument[]>;
  assignment: Assignment;
  assignments: readonly Assignment[];
  request: RunRequest;
  requestedBy: string;
  now: number;
}

/** @returns how many agents were decided on: fewer than given when their payloads are large */
async function queuePart(context: Context, run: Part, agents: readonly Agent[]) {
  const { db } = context;
  const { runId, request } = run;
  const outcomes: { node_id: string; operation_id: string | null; status: string; error: string | null }[] = [];
  const operations: { operation_id: string; node_id: string; modules: string; payload_digest: string }[] = [];
  const payloads = new Map<string, string>();
  let length = 0;
  for (const agent of agents) {
    // Resolving is pure work; let requests in between.
    if (outcomes.length % 100 === 99) await new Promise((resolve) => setImmediate(resolve));
    if (length > partLength) break;
    const { node_id } = agent;
    try {
      if (request.offline !== 'queue' && !context.presence.isConnected(node_id))
        throw new MusterError('agent_not_connected', 'the agent is not connected');
      const desired = desiredModules(run.assignments, agent, {
        modules: [],
        windowOpen: false,
        // To see what it would do is always allowed; doing it is for its window, or for its being enforced.
        ...(request.kind === 'plan' ? { including: run.assignment.name } : {}),
      });
      const payload = encodePayload(resolvePayload(await run.load(desired.modules), desired, agent));
      if (!payloads.has(payload.digest)) {
        payloads.set(payload.digest, payload.text);
        length += payload.text.length;
      }
      const operation_id = context.newId();
      operations.push({ operation_id, node_id, modules: toJson(desired.modules), payload_digest: payload.digest });
      outcomes.push({ node_id, operation_id, status: 'queued', error: null });
    } catch (error) {
      if (!(error instanceof MusterError)) throw error;
      outcomes.push({ node_id, operation_id: null, status: 'failed', error: error.message });
    }
  }
  await db.write({
    name: 'runs/queue',
    statements: [
      ...[...payloads].map(([digest, payload]) => statement(putPayload, { digest, payload })),
      statement(insertRunOperations, {
        run_id: runId,
        kind: request.kind,
        requested_by: run.requestedBy,
        created_at: run.now,
        expires_at: run.now + (request.ttl ?? defaultTtlSecs),
        rows: jsonRows(operations),
      }),
      statement(putRunResults, { run_id: runId, rows: jsonRows(outcomes) }),
      statement(failStranded, { run_id: runId, error: 'the agent is not approved any more' }),
    ],
  });
  for (const { node_id } of operations) context.bus.publish({ type: 'work', node_id });
  return outcomes.length;
}

const inParts = <T>(rows: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(rows.length / agentsAtOnce) }, (_, i) =>
    rows.slice(i * agentsAtOnce, (i + 1) * agentsAtOnce),
  );

/** At start: what another process had written down for a run and not decided on will not be decided any more. */
export async function failUndecidedRuns({ db }: Context): Promise<void> {
  const error = 'the orchestrator stopped before this agent’s turn';
  await db.write({ name: 'runs/undecided', statements: [statement(failUndecided, { error })] });
}

export async function awaitRun(
  context: Context,
  waiting: Waiting,
  runId: string,
  signal?: AbortSignal,
): Promise<{ run: Run; ended: boolean }> {
  const look = async () => ((await findRow(context, runId))?.status === 'running' ? null : true);
  await untilFound(context, waiting, runId, look, context.now() + longestWaitMs, signal);
  const run = await getRun(context, runId);
  return { run, ended: run.status !== 'running' };
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

export async function getRun(context: Context, runId: string): Promise<Run> {
  const row = await findRow(context, runId);
  if (!row) throw new MusterError('run_not_found', `there is no run ${JSON.stringify(runId.slice(0, 64))}`);
  const results = await context.db.all(runResults, { run_id: runId });
  return {
    ...toEntry(row),
    results: results.map((result) => ({
      node_id: result.node_id,
      name: result.name,
      operation_id: result.operation_id,
      status: result.operation_status ?? result.status,
      error: result.operation_error ?? result.error,
      summary: result.summary === null ? null : fromJson<Summary>(result.summary),
    })),
  };
}

export async function listRuns({ db }: Context, page: { limit?: number | undefined; offset?: number | undefined }) {
  return (await db.all(runs, { limit: page.limit ?? 50, offset: page.offset ?? 0 })).map(toEntry);
}
