import type { OperationKind, OperationStatus, Summary } from '@muster/protocol';
import { toJson } from '../../store/json-text.ts';
import { driftDueAgain } from '../../store/queries/drift-schedule.ts';
import { deleteOpenOperation, endOperation, endUndispatched } from '../../store/queries/operations/operation-end.ts';
import { setRunResult } from '../../store/queries/runs.ts';
import { putFailedApply } from '../../store/queries/state.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';

/** Ends single operations. Preconditions ensure that each operation ends only once. */

export interface Ending {
  status: Exclude<OperationStatus, 'queued' | 'running'>;
  error: string | null;
  summary: Summary | null;
  /** Unix seconds; null if the operation never started, or if the recorded time must be kept. */
  startedAt: number | null;
}

export interface EndingOperation {
  operation_id: string;
  node_id: string;
  kind: OperationKind;
  run_id: string | null;
  requested_by: string;
}

/**
 * Returns the statements that end an operation, for the caller's transaction. If the operation has already ended, the
 * transaction fails with `operation_finished`.
 * @param undispatched end the operation only if it was not dispatched
 */
export function endStatements(
  context: Context,
  operation: EndingOperation,
  ending: Ending,
  actor: Actor,
  agentName: string,
  undispatched = false,
): Statement[] {
  const { operation_id, node_id, kind, run_id } = operation;
  const finished_at = seconds(context.now());
  const precondition = { expect: 'changed', else: 'operation_finished' } as const;
  const { status, error } = ending;
  // Deletes a drift check's operation, but keeps its drift record.
  if (kind === 'drift') {
    const deletion = statement(deleteOpenOperation, { operation_id }, precondition);
    // The check did not run, so the machine is due again.
    const missed = status === 'expired' || status === 'interrupted';
    return missed ? [deletion, statement(driftDueAgain, { node_id, now: finished_at })] : [deletion];
  }
  const statements: Statement[] = [
    undispatched
      ? statement(endUndispatched, { operation_id, status, finished_at, error }, precondition)
      : statement(
          endOperation,
          {
            operation_id,
            status,
            started_at: ending.startedAt,
            finished_at,
            summary: ending.summary === null ? null : toJson(ending.summary),
            error,
          },
          precondition,
        ),
  ];
  if (kind === 'apply' && status !== 'succeeded' && status !== 'cancelled')
    statements.push(statement(putFailedApply, { node_id, operation_id, now: finished_at }));
  if (run_id !== null) statements.push(statement(setRunResult, { run_id, node_id, status, error }));
  const succeeded = kind === 'plan' ? 'state.planned' : 'state.applied';
  statements.push(
    audited(context, {
      type: status === 'succeeded' ? succeeded : status === 'cancelled' ? 'state.cancelled' : 'state.failed',
      severity: status === 'succeeded' ? 'info' : 'warning',
      actor,
      target: { type: 'agent', id: node_id, name: agentName },
      summary: `${kind} on ${agentName} ${status}`,
      metadata: {
        operation_id,
        requested_by: operation.requested_by,
        ...(run_id === null ? {} : { run_id }),
        status,
        ...(ending.summary === null ? {} : { summary: ending.summary }),
      },
    }),
  );
  return statements;
}

/**
 * Announces that an operation has ended, for example to waiting requests. Call this after the transaction is committed.
 */
export function announceEnd(
  { bus }: Pick<Context, 'bus'>,
  { operation_id, node_id, run_id }: Pick<EndingOperation, 'operation_id' | 'node_id' | 'run_id'>,
  status: OperationStatus,
): void {
  bus.publish({ type: 'operation_ended', operation_id, node_id, run_id, status });
}

/** Ignores the error for an operation that has already ended. Throws any other error. */
export function ignoreFinished(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'operation_finished')) throw error;
}
