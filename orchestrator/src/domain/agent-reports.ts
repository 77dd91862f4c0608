import { hasEnded, type ResourceResult } from '@muster/protocol';
import type { Report } from '@muster/protocol/wire';
import { decodeTime } from 'ulid';
import { acknowledgedSeq, advanceSpool } from '../store/agents.ts';
import { fromJson, toJson } from '../store/json-text.ts';
import { assignmentAuditing } from '../store/modules.ts';
import { putOutput, putResourceResults } from '../store/operation-results.ts';
import { markRunning, type ReportedOperation, reportedOperation, setPlanDigest } from '../store/operations.ts';
import { jsonRows } from '../store/params.ts';
import { runBasis } from '../store/runs.ts';
import { type Statement, statement } from '../store/unit.ts';
import type { Refusal } from './agent-link.ts';
import type { AppliedMemory } from './applied-memory.ts';
import { applyEnd } from './apply-end.ts';
import { type Context, seconds } from './context.ts';
import { driftStatements } from './drift.ts';
import { createFindings } from './drift-findings.ts';
import { appliedScope, auditScope } from './drift-news.ts';
import type { InFlight } from './in-flight.ts';
import { bare, weightOf } from './kept-results.ts';
import { announceEnd, endStatements, ignoreFinished } from './operation-end.ts';
import { reportedResults } from './operation-results.ts';
import type { Payloads } from './payloads.ts';
import type { RunBasis } from './run-basis.ts';

/** What agents report, made into rows: all of one call in one unit, with the number up to which they are acknowledged. */

type Row = ReportedOperation;
const findRow = ({ db }: Context, operationId: string) => db.get(reportedOperation, { operation_id: operationId });
type Finished = Extract<Report, { type: 'finished' }>;

/** What is kept of one operation; beyond it results are kept without their details, and output is not. In characters. */
const mostCharacters = 32 * 1024 * 1024;

/** What spares looking at rows. */
interface Known {
  find: InFlight['find'];
  sameAs: AppliedMemory['sameAs'];
}
/** After a refusal only the database is asked. */
const nothing: Known = { find: () => undefined, sameAs: () => null };

/** What is remembered of agents from one report to the next. */
interface ReportMemory {
  readonly inFlight: InFlight;
  readonly applied: AppliedMemory;
  readonly payloads: Pick<Payloads, 'setOf'>;
}

export async function reported(
  context: Context,
  memory: ReportMemory,
  nodeId: string,
  instanceId: string,
  seq: number,
  reports: readonly Report[],
): Promise<Refusal | null> {
  const remembered: Known = { find: memory.inFlight.find, sameAs: memory.applied.sameAs };
  for (let attempt = 1, known = remembered; attempt <= 5; attempt++, known = nothing) {
    try {
      return await commit(context, memory, known, nodeId, instanceId, seq, reports);
    } catch (error) {
      ignoreFinished(error);
    }
    // Either all of it is committed already, or an operation got its end elsewhere in this moment: then once more,
    // which leaves that operation out.
    const acknowledged = (await context.db.get(acknowledgedSeq, { node_id: nodeId }))?.seq ?? 0;
    if (seq <= acknowledged) return null;
  }
  throw new Error(`report ${seq} of agent ${nodeId} is refused by the database again and again`);
}

async function commit(
  context: Context,
  { inFlight, applied, payloads }: ReportMemory,
  known: Known,
  nodeId: string,
  instanceId: string,
  seq: number,
  reports: readonly Report[],
): Promise<Refusal | null> {
  const rows = new Map<string, Row>();
  for (const { operation_id } of reports) {
    if (rows.has(operation_id)) continue;
    const row = known.find(operation_id) ?? (await findRow(context, operation_id));
    if (row && row.node_id !== nodeId) {
      const message = `operation ${operation_id} belongs to another agent`;
      return { code: 'protocol_violation', message, retry_after_secs: null };
    }
    // One that is gone, pruned perhaps: there is nothing to add to, and the agent may forget it.
    if (row) rows.set(operation_id, row);
  }
  const statements: Statement[] = [
    statement(
      advanceSpool,
      { node_id: nodeId, instance_id: instanceId, seq },
      { expect: 'changed', else: 'operation_finished' },
    ),
  ];
  const ended: { row: Row; finished: Finished; unchanged: string | null }[] = [];
  // What ends in the same unit need not be said to run in it.
  const ending = new Set(reports.flatMap((report) => (report.type === 'finished' ? report.operation_id : [])));
  const fresh = new Map<string, Map<number, ResourceResult>>();
  for (const report of reports) {
    const row = rows.get(report.operation_id);
    // Whatever an agent says after its own last word is noise.
    if (!row || hasEnded(row.status) || ended.some((end) => end.row === row)) continue;
    const { operation_id } = row;
    if (report.type === 'accepted') {
      if (!ending.has(operation_id))
        statements.push(statement(markRunning, { operation_id, now: seconds(context.now()) }));
    } else if (report.type === 'results') {
      const results = fresh.get(operation_id) ?? new Map<number, ResourceResult>();
      fresh.set(operation_id, results);
      const asRows = report.results.map((given, i) => {
        const result = inFlight.weigh(operation_id, weightOf(given)) > mostCharacters ? bare(given) : given;
        results.set(report.position + i, result);
        return { position: report.position + i, result: toJson(result) };
      });
      statements.push(statement(putResourceResults, { operation_id, rows: jsonRows(asRows) }));
    } else if (report.type === 'output') {
      const { resource, stdout, stderr, exit_code, truncated } = report;
      if (inFlight.weigh(operation_id, stdout.length + stderr.length) > mostCharacters) continue;
      statements.push(
        statement(putOutput, { operation_id, resource_key: resource, stdout, stderr, exit_code, truncated }),
      );
    } else {
      const startedAt = beganAt(report, seconds(context.now()));
      const finished = { ...report, started_at: startedAt };
      const end = await finish(context, payloads, known, row, finished, fresh.get(operation_id) ?? new Map());
      statements.push(...end.statements);
      ended.push({ row, finished: report, unchanged: end.unchanged });
    }
  }
  await context.db.write({ name: 'operations/report', statements });
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
 * When an operation began whose beginning nobody here has heard of until now. By this clock: how long it took is taken
 * from the agent, the time of day is not, since its clock may be an hour off.
 */
function beganAt({ operation_id, started_at, finished_at }: Finished, now: number): number {
  const took = Math.max(0, finished_at - started_at);
  // Never before it was asked for, should that clock have been set in the middle of it.
  return Math.min(now, Math.max(now - took, Math.floor(decodeTime(operation_id) / 1000)));
}

/** @returns also the digest of the desired set of an apply that changed nothing */
async function finish(
  context: Context,
  payloads: Pick<Payloads, 'setOf'>,
  known: Known,
  row: Row,
  finished: Finished,
  fresh: ReadonlyMap<number, ResourceResult>,
): Promise<{ statements: Statement[]; unchanged: string | null }> {
  const { operation_id, node_id, kind, label } = row;
  const { status, summary, error } = finished;
  const statements = endStatements(
    context,
    row,
    { status, error, summary, startedAt: finished.started_at },
    { type: 'agent', id: node_id, name: label },
    label,
  );
  if (kind === 'plan' && status === 'succeeded' && finished.plan_digest !== undefined)
    statements.push(statement(setPlanDigest, { operation_id, plan_digest: finished.plan_digest }));
  if (kind === 'apply') {
    const end = await applyEnd(context, payloads, known.sameAs, row, finished, fresh);
    return { statements: [...statements, ...end.statements], unchanged: end.unchanged };
  }
  if (kind === 'plan' && row.trigger !== 'audit') return { statements, unchanged: null };
  const audit = kind === 'plan' ? await auditOf(context, row.run_id) : null;
  const findings = createFindings();
  for await (const page of reportedResults(context, operation_id, fresh, summary.total)) {
    const results = page.map(([, result]) => result);
    findings.take(audit === null ? results : results.filter(({ module }) => audit.modules.includes(module)));
  }
  const verdict = findings.verdict(status);
  if (audit !== null) {
    const { audits } = audit;
    // It is the plan that the machine was held against.
    const check = { operation_id, node_id, trigger: 'audit' as const, snapshot_operation_id: operation_id };
    const held = { label, scope: audits === null ? null : auditScope(audits.name) };
    if (audits !== null)
      statements.push(statement(assignmentAuditing, audits, { expect: 'row', else: 'operation_finished' }));
    statements.push(...(await driftStatements(context, check, held, verdict, findings.summary(), error)));
    return { statements, unchanged: null };
  }
  const { trigger, snapshot_operation_id } = row;
  const held = { label, scope: appliedScope };
  const check = { operation_id, node_id, trigger, snapshot_operation_id };
  statements.push(...(await driftStatements(context, check, held, verdict, summary, error)));
  return { statements, unchanged: null };
}

/**
 * The assignment that a run audits.
 * @returns `modules`: of whose resources it tells; `audits`: null when it audits nobody any more, or others: what was
 *   found is nothing that would be looked at again
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
