import type { ResourceResult } from '@muster/protocol';
import type { Report } from '@muster/protocol/wire';
import { fromJson, type JsonText } from '../../store/json-text.ts';
import { jsonRows } from '../../store/params.ts';
import type { ReportedOperation } from '../../store/queries/operations/operations.ts';
import {
  appliedByKeys,
  deleteApplied,
  deleteAppliedModules,
  deleteOthers,
  keepOthers,
  putAgentState,
  putApplied,
  putAppliedModules,
  repeatAgentState,
} from '../../store/queries/state.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { followApply } from '../drift/drift-effects.ts';
import { type AppliedMemory, appliedDigest } from '../operations/applied-memory.ts';
import { createAppliedChanges, type SentSet } from '../operations/applied-state.ts';
import { reportedResults } from '../operations/operation-results.ts';
import type { Payloads } from '../operations/payloads.ts';
import { type Context, seconds } from '../shared/context.ts';
import { appliedScope } from '../shared/drift-scope.ts';

type Finished = Extract<Report, { type: 'finished' }>;

/**
 * Returns the statements that update applied state after an apply.
 * @param sameAs finds a previous apply of the same desired state, from the same revisions, that changed nothing
 * @param fresh results that are not yet committed, by position
 * @returns the statements, and a digest of the desired state and the revisions if the apply changed and removed nothing
 */
export async function applyEnd(
  context: Context,
  payloads: Pick<Payloads, 'setOf'>,
  sameAs: AppliedMemory['sameAs'],
  { operation_id, node_id, label, payload_digest, revisions }: ReportedOperation,
  { status, summary }: Pick<Finished, 'status' | 'summary'>,
  fresh: ReadonlyMap<number, ResourceResult>,
): Promise<{ statements: Statement[]; unchanged: string | null }> {
  const { db } = context;
  const now = seconds(context.now());
  const set = (payload_digest === null ? null : await payloads.setOf(payload_digest)) ?? nothingSent;
  const applied = payload_digest === null ? null : appliedDigest(payload_digest, revisions);
  if (status === 'succeeded' && isUnchanged(set, fresh)) {
    const last = sameAs(node_id, applied);
    if (last !== null) {
      const repeated = { node_id, last_operation_id: last, operation_id, now };
      const again = statement(repeatAgentState, repeated, { expect: 'changed', else: 'operation_finished' });
      return { statements: [again], unchanged: applied };
    }
  }
  const changes = createAppliedChanges(set, operation_id, now, status);
  const effects = await followApply(context, { node_id, label, scope: appliedScope });
  for await (const page of reportedResults(context, operation_id, fresh, summary.total)) {
    const rows = await db.all(appliedByKeys, { node_id, keys: changes.keysOf(page) });
    changes.take(page, new Map(rows.map((row) => [row.key, row])));
    effects.take(page.map(([, result]) => result));
  }
  const { put, removed, stay, complete, unchanged } = changes.changes();
  const statements: Statement[] = [];
  if (put.length > 0)
    statements.push(statement(putApplied, { node_id, rows: jsonRows(put.map((row) => ({ ...row }))) }));
  if (removed.length > 0) statements.push(statement(deleteApplied, { node_id, keys: removed }));
  if (stay !== null && set !== nothingSent) {
    const { keep_modules } = set;
    const others = { node_id, stay: jsonRows(stay.map((key) => ({ key }))), keep_modules };
    statements.push(statement(deleteOthers, { ...others, complete }));
    if (keep_modules.length > 0) statements.push(statement(keepOthers, { ...others, now }));
  }
  const succeeded = status === 'succeeded';
  if (succeeded) statements.push(...moduleStatements(node_id, revisions, set.keep_modules));
  const state = {
    node_id,
    snapshot_operation_id: succeeded ? operation_id : null,
    drift_due_at: succeeded ? now : null,
    now,
  };
  statements.push(statement(putAgentState, state), ...effects.statements(operation_id, succeeded));
  return { statements, unchanged: succeeded && unchanged ? applied : null };
}

/**
 * Returns the statements that record which revisions the agent has applied.
 * @param revisions the revision of each applied module, as JSON; null if unknown
 * @param kept modules that the apply skipped, so the agent keeps their earlier revisions
 */
function moduleStatements(node_id: string, revisions: string | null, kept: readonly string[]): Statement[] {
  const modules = revisions === null ? {} : fromJson(revisions as JsonText<Record<string, number>>);
  const rows = Object.entries(modules).map(([module, revision]) => ({ module, revision }));
  const stay = [...Object.keys(modules), ...kept];
  return [
    statement(deleteAppliedModules, { node_id, stay }),
    ...(rows.length === 0 ? [] : [statement(putAppliedModules, { node_id, rows: jsonRows(rows) })]),
  ];
}

/** Replaces a payload that is no longer stored. */
const nothingSent: SentSet = { resources: [], keep_modules: [] };

const isUnchanged = ({ resources }: SentSet, results: ReadonlyMap<number, ResourceResult>): boolean =>
  results.size === resources.length &&
  [...results].every(([position, { status }]) => position < resources.length && status === 'unchanged');
