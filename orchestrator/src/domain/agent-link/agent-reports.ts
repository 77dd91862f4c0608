import { hasEnded, type ResourceResult } from '@muster/protocol';
import type { Report } from '@muster/protocol/wire';
import { decodeTime } from 'ulid';
import { fromJson } from '../../store/json-text.ts';
import { acknowledgedSeq, advanceSpool, linkClaimed } from '../../store/queries/agents/agents.ts';
import { assignmentAuditing } from '../../store/queries/assignments.ts';
import { deleteResourceResults, putOutput, putResourceResults } from '../../store/queries/operation-results.ts';
import { markRunning } from '../../store/queries/operations/dispatch.ts';
import { type ReportedOperation, reportedOperation, setPlanDigest } from '../../store/queries/operations/operations.ts';
import { runBasis } from '../../store/queries/runs.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type AgentUsage, bytesOf, eventsIn, withoutEvents } from '../agents/agent-usage.ts';
import { driftStatements } from '../drift/drift.ts';
import { createFindings, defaultRecordLimits, reducedRecordLimits } from '../drift/drift-findings.ts';
import type { ReportSpace } from '../fleet/disk-space.ts';
import { announceEnd, endStatements, ignoreFinished } from '../operation-end/operation-end.ts';
import type { AppliedMemory } from '../operations/applied-memory.ts';
import type { OperationCache } from '../operations/operation-cache.ts';
import { reportedResults, rowsOfResults } from '../operations/operation-results.ts';
import type { Payloads } from '../operations/payloads.ts';
import {
  defaultLimits,
  type Fault,
  keepOutput,
  keepResults,
  type ReportLimits,
  reducedLimits,
  type Tally,
} from '../operations/report-limits.ts';
import type { SentNamesOf } from '../operations/sent-names.ts';
import type { RunBasis } from '../runs/run-basis.ts';
import { type Context, seconds } from '../shared/context.ts';
import { appliedScope, auditScope } from '../shared/drift-scope.ts';
import { applyEnd } from './apply-end.ts';
import type { Refusal } from './refusal.ts';

/**
 * Converts agent reports to rows. Writes all reports in a call and the acknowledged sequence number in one transaction.
 */

type Row = ReportedOperation;
const findRow = ({ db }: Context, operationId: string) => db.get(reportedOperation, { operation_id: operationId });
type Finished = Extract<Report, { type: 'finished' }>;

/** Cached lookups, to save queries. */
interface Known {
  find: OperationCache['find'];
  sameAs: AppliedMemory['sameAs'];
}
/** An empty cache for retries, so that they read everything from the database. */
const nothing: Known = { find: () => undefined, sameAs: () => null };

/** Caches and limits that all reports share. */
export interface ReportMemory {
  readonly cache: OperationCache;
  readonly applied: AppliedMemory;
  readonly payloads: Pick<Payloads, 'setOf'>;
  readonly sentNames: SentNamesOf;
  readonly usage: AgentUsage;
  /** Returns the free disk space at the last measurement. */
  readonly space: () => ReportSpace;
}

/** Refuses reports if the disk lacks space even for the final reports of operations. Agents then keep their reports. */
const diskFull: Refusal = {
  code: 'unavailable',
  message: 'the orchestrator’s disk is full',
  retry_after_secs: 60,
};

/**
 * Refuses the link if another process has since admitted the agent. That process holds the agent's newest link, and
 * receives the agent's reports.
 */
const linkedElsewhere: Refusal = {
  code: 'unavailable',
  message: 'the agent has a newer link, or was removed',
  retry_after_secs: 1,
};

export async function reported(
  context: Context,
  memory: ReportMemory,
  nodeId: string,
  instanceId: string,
  seq: number,
  reports: readonly Report[],
): Promise<Refusal | null> {
  if (memory.space() === 'spent') return diskFull;
  const remembered: Known = { find: memory.cache.find, sameAs: memory.applied.sameAs };
  for (let attempt = 1, known = remembered; attempt <= 5; attempt++, known = nothing) {
    try {
      return await commit(context, memory, known, nodeId, instanceId, seq, reports);
    } catch (error) {
      ignoreFinished(error);
    }
    const link = { node_id: nodeId, incarnation: context.incarnation };
    if (!(await context.db.get(linkClaimed, link))) return linkedElsewhere;
    // Either all reports are already committed, or another process ended one of the operations. The next attempt skips
    // that operation.
    const acknowledged = (await context.db.get(acknowledgedSeq, { node_id: nodeId }))?.seq ?? 0;
    if (seq <= acknowledged) return null;
  }
  throw new Error(`failed to store report ${seq} of agent ${nodeId} in 5 attempts`);
}

async function limitsFor({ usage, space }: ReportMemory, nodeId: string): Promise<ReportLimits> {
  if (space() === 'low') return reducedLimits('the orchestrator’s disk was nearly full');
  const today = await usage.today(nodeId);
  return today.bytes < usage.limits.bytes ? defaultLimits : reducedLimits('the agent had reached its daily limit');
}

const violation = ({ fault }: Fault): Refusal => ({
  code: 'protocol_violation',
  message: fault,
  retry_after_secs: null,
});

async function commit(
  context: Context,
  memory: ReportMemory,
  known: Known,
  nodeId: string,
  instanceId: string,
  seq: number,
  reports: readonly Report[],
): Promise<Refusal | null> {
  const { cache, applied, sentNames, usage } = memory;
  const rows = new Map<string, Row>();
  for (const { operation_id } of reports) {
    if (rows.has(operation_id)) continue;
    const row = known.find(operation_id) ?? (await findRow(context, operation_id));
    if (row && row.node_id !== nodeId)
      return violation({ fault: `operation ${operation_id} belongs to another agent` });
    // The operation was deleted, for example by pruning. Its report is dropped and acknowledged.
    if (!row) continue;
    if (row.dispatched_at === null && !hasEnded(row.status))
      return violation({ fault: `operation ${operation_id} was not sent to this agent` });
    rows.set(operation_id, row);
  }
  const allowed = await limitsFor(memory, nodeId);
  const statements: Statement[] = [
    statement(
      advanceSpool,
      { node_id: nodeId, instance_id: instanceId, seq, incarnation: context.incarnation },
      { expect: 'changed', else: 'operation_finished' },
    ),
  ];
  const ended: { row: Row; finished: Finished; unchanged: string | null }[] = [];
  const ending = new Set(reports.flatMap((report) => (report.type === 'finished' ? report.operation_id : [])));
  const fresh = new Map<string, Map<number, ResourceResult>>();
  const tallies = new Map<string, Tally>();
  const tallyOf = (operationId: string) => tallies.get(operationId) ?? cache.tallyOf(operationId);
  let events = 0;
  for (const report of reports) {
    const row = rows.get(report.operation_id);
    if (!row || hasEnded(row.status) || ended.some((end) => end.row === row)) continue;
    const { operation_id } = row;
    if (report.type === 'accepted') {
      if (!ending.has(operation_id))
        statements.push(statement(markRunning, { operation_id, now: seconds(context.now()) }));
    } else if (report.type === 'results') {
      const before = tallyOf(operation_id);
      // After an agent restarts, it reruns plans from the beginning, but resumes applies.
      const startsOver = row.kind !== 'apply' && report.position === 0 && before.next > 0;
      const tally = startsOver ? { ...before, next: 0 } : before;
      const accepted = keepResults(report, row.kind, await sentNames(row), tally, allowed);
      if ('fault' in accepted) return violation(accepted);
      tallies.set(operation_id, accepted.tally);
      if (startsOver) {
        statements.push(statement(deleteResourceResults, { operation_id }));
        fresh.delete(operation_id);
      }
      const results = fresh.get(operation_id) ?? new Map<number, ResourceResult>();
      fresh.set(operation_id, results);
      for (const { position, result } of accepted.rows) results.set(position, result);
      for (const row of rowsOfResults(accepted.rows, tally.next))
        statements.push(statement(putResourceResults, { operation_id, ...row }));
    } else if (report.type === 'output') {
      const accepted = keepOutput(report, await sentNames(row), tallyOf(operation_id), allowed);
      if ('fault' in accepted) return violation(accepted);
      tallies.set(operation_id, accepted.tally);
      if (accepted.output === null) continue;
      const { resource, stdout, stderr, exit_code, truncated } = accepted.output;
      statements.push(
        statement(putOutput, { operation_id, resource_key: resource, stdout, stderr, exit_code, truncated }),
      );
    } else {
      const startedAt = beganAt(report, seconds(context.now()));
      const finished = { ...report, started_at: startedAt };
      const end = await finish(context, memory, known, row, finished, fresh.get(operation_id) ?? new Map(), allowed);
      statements.push(...end.statements);
      events += end.events;
      ended.push({ row, finished: report, unchanged: end.unchanged });
    }
  }
  // The final report of an apply is as large as its desired state, which operators control, so its transaction is
  // exempt from the limits for agents.
  const ofAgent = !ended.some(({ row }) => row.kind === 'apply');
  const label = rows.values().next().value?.label;
  await usage.consume({ node_id: nodeId, label }, { bytes: bytesOf(statements), events }, (more) =>
    context.db.write({ name: 'operations/report', statements: [...statements, ...more], ofAgent }),
  );
  for (const [operation_id, tally] of tallies) if (!ending.has(operation_id)) cache.tally(operation_id, tally);
  for (const { operation_id, run_id, kind } of rows.values())
    if (kind !== 'drift' && !ending.has(operation_id))
      context.bus.publish({ type: 'operation_running', operation_id, node_id: nodeId, run_id });
  for (const { row, finished, unchanged } of ended) {
    if (unchanged !== null) applied.remember(row.node_id, unchanged, row.operation_id);
    else if (row.kind === 'apply') applied.forget(row.node_id);
    announceEnd(context, row, finished.status);
  }
  return null;
}

/**
 * Returns the start time of an operation that was not reported as started: the time of the report minus the duration.
 * The agent's clock may be wrong, so only the duration is taken from it.
 */
function beganAt({ operation_id, started_at, finished_at }: Finished, now: number): number {
  const took = Math.max(0, finished_at - started_at);
  // Limits the start to the time of the request, because the agent's clock may have been set during the operation.
  return Math.min(now, Math.max(now - took, Math.floor(decodeTime(operation_id) / 1000)));
}

/**
 * Returns the statements that record how an operation ended.
 * @returns `unchanged`: digest of the desired state and revisions of an apply that changed nothing; `events`: number of
 *   events caused by drift findings and applied state, including those dropped by the daily limit
 */
async function finish(
  context: Context,
  { payloads, usage }: ReportMemory,
  known: Known,
  row: Row,
  finished: Finished,
  fresh: ReadonlyMap<number, ResourceResult>,
  allowed: ReportLimits,
): Promise<{ statements: Statement[]; unchanged: string | null; events: number }> {
  const { operation_id, node_id, kind, label } = row;
  const { status, summary, error } = finished;
  const statements = endStatements(
    context,
    row,
    { status, error, summary, startedAt: finished.started_at },
    { type: 'agent', id: node_id, name: label },
    label,
  );
  let events = 0;
  /** Drops the events from the statements if the agent has reached its daily event limit. */
  const add = async (added: Statement[]) => {
    events += eventsIn(added);
    const today = await usage.today(node_id);
    statements.push(...(today.events < usage.limits.events ? added : withoutEvents(added)));
  };
  if (kind === 'plan' && status === 'succeeded' && finished.plan_digest !== undefined)
    statements.push(statement(setPlanDigest, { operation_id, plan_digest: finished.plan_digest }));
  if (kind === 'apply') {
    const end = await applyEnd(context, payloads, known.sameAs, row, finished, fresh);
    await add(end.statements);
    return { statements, unchanged: end.unchanged, events };
  }
  if (kind === 'plan' && row.trigger !== 'audit') return { statements, unchanged: null, events };
  const audit = kind === 'plan' ? await auditOf(context, row.run_id) : null;
  const findings = createFindings(allowed === defaultLimits ? defaultRecordLimits : reducedRecordLimits);
  for await (const page of reportedResults(context, operation_id, fresh, summary.total)) {
    const results = page.map(([, result]) => result);
    findings.take(audit === null ? results : results.filter(({ module }) => audit.modules.includes(module)));
  }
  const verdict = findings.verdict(status);
  if (audit !== null) {
    const { audits } = audit;
    // The machine was compared with the plan, so the plan serves as the snapshot.
    const check = { operation_id, node_id, trigger: 'audit' as const, snapshot_operation_id: operation_id };
    const subject = { label, scope: audits === null ? null : auditScope(audits.name) };
    if (audits !== null)
      statements.push(statement(assignmentAuditing, audits, { expect: 'row', else: 'operation_finished' }));
    await add(await driftStatements(context, check, subject, verdict, findings.summary(), error));
    return { statements, unchanged: null, events };
  }
  const { trigger, snapshot_operation_id } = row;
  const subject = { label, scope: appliedScope };
  const check = { operation_id, node_id, trigger, snapshot_operation_id };
  await add(await driftStatements(context, check, subject, verdict, summary, error));
  return { statements, unchanged: null, events };
}

/**
 * Finds the assignment that a run audits.
 * @returns `modules`: modules whose resources the run covers; `audits`: null if no later check could clear the
 *   findings, because the assignment is no longer in audit mode or its selector changed
 */
async function auditOf(
  { db }: Context,
  runId: string | null,
): Promise<{ audits: { name: string; selector: string } | null; modules: readonly string[] }> {
  const row = runId === null ? undefined : await db.get(runBasis, { run_id: runId });
  const { assignment } = row ? (fromJson(row.basis) as RunBasis) : { assignment: null };
  if (assignment === null) return { audits: null, modules: [] };
  const { name, selector, modules } = assignment;
  const audits = (await db.get(assignmentAuditing, { name, selector })) ? { name, selector } : null;
  return { audits, modules };
}
