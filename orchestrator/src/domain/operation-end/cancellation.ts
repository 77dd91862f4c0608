import { hasEnded, MusterError } from '@muster/protocol';
import {
  cancelRequests,
  endAllOpen,
  endedAmong,
  endOpenRunResults,
  openBeside,
  requestCancel,
} from '../../store/queries/operations/operation-end.ts';
import { openOperations, operationById } from '../../store/queries/operations/operations.ts';
import { type Statement, statement, type UnitResult } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { announceEnd, type Ending, type EndingOperation, endStatements, ignoreFinished } from './operation-end.ts';

/**
 * Cancels an operation. An undispatched operation ends immediately. For a dispatched operation, the agent receives a
 * cancellation request, and the operation ends when the agent reports its end.
 * @throws MusterError operation_not_found, operation_finished
 */
export async function cancelOperation(context: Context, actor: Actor, operationId: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const operation = await context.db.get(operationById, { operation_id: operationId });
    if (!operation || operation.kind === 'drift') throw new MusterError('operation_not_found');
    if (hasEnded(operation.status))
      throw new MusterError('operation_finished', `the operation has ${operation.status}`);
    const label = await agentLabel(context, operation.node_id);
    try {
      if (operation.dispatched_at === null) await cancelUnsent(context, actor, operation, label);
      else await askToCancel(context, actor, operation, label);
      return;
    } catch (error) {
      // The operation's state has changed since it was read.
      if (attempt === maxAttempts) throw error;
      ignoreFinished(error);
    }
  }
}

const maxAttempts = 5;

async function cancelUnsent(context: Context, actor: Actor, operation: EndingOperation, label: string): Promise<void> {
  const ending: Ending = { status: 'cancelled', error: `canceled by ${actor.name}`, summary: null, startedAt: null };
  const statements = endStatements(context, operation, ending, actor, label, true);
  await context.db.write({ name: 'operations/cancel', statements });
  announceEnd(context, operation, 'cancelled');
}

async function askToCancel(context: Context, actor: Actor, operation: EndingOperation, label: string): Promise<void> {
  const { operation_id, node_id, kind } = operation;
  await context.db.write({
    name: 'operations/request cancel',
    statements: [
      statement(
        requestCancel,
        { operation_id, now: seconds(context.now()) },
        { expect: 'changed', else: 'operation_finished' },
      ),
      audited(context, {
        type: 'state.cancel_requested',
        actor,
        target: { type: 'agent', id: node_id, name: label },
        summary: `cancellation of ${kind} on ${label} requested`,
        metadata: { operation_id },
      }),
    ],
  });
  context.bus.publish({ type: 'cancel', node_id, operation_id });
}

/**
 * Prepares to end all open operations of an agent, for the transaction that rejects or removes the agent.
 * @returns statements that fail with `agent_changed` if the open operations have changed; and a function to call with
 *   the result of the commit
 */
export async function cancelling(context: Context, actor: Actor, nodeId: string, label: string, reason: string) {
  const finished_at = seconds(context.now());
  const end = statement(endAllOpen, { node_id: nodeId, status: 'cancelled', finished_at, error: reason });
  const open = await context.db.all(openOperations, { node_id: nodeId });
  const ids = open.map(({ operation_id }) => operation_id);
  // The event lists every operation, so the operations must not change between the read and the write.
  const isSame = { expect: 'no_row', else: 'agent_changed' } as const;
  const statements: Statement[] = [
    statement(openBeside, { node_id: nodeId, ids }, isSame),
    statement(endedAmong, { ids }, isSame),
    statement(endOpenRunResults, { node_id: nodeId, status: 'cancelled', error: reason }),
    end,
    ...open.map(({ operation_id, kind }) =>
      audited(context, {
        type: 'state.cancelled',
        actor,
        target: { type: 'agent', id: nodeId, name: label },
        summary: `${kind} on ${label} canceled: ${reason}`,
        metadata: { operation_id },
      }),
    ),
  ];
  const announce = (result: UnitResult) => {
    for (const { operation_id, run_id } of result.of(end).rows) {
      context.bus.publish({ type: 'cancel', node_id: nodeId, operation_id });
      announceEnd(context, { operation_id, node_id: nodeId, run_id }, 'cancelled');
    }
  };
  return { statements, announce };
}

export async function cancellationsFor({ db }: Context, nodeId: string): Promise<string[]> {
  return (await db.all(cancelRequests, { node_id: nodeId })).map(({ operation_id }) => operation_id);
}
