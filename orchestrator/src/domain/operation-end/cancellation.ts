import { hasEnded, MusterError } from '@muster/protocol';
import {
  cancelRequests,
  endAllOpen,
  endOpenRunResults,
  openOperations,
  operationById,
  requestCancel,
} from '../../store/queries/operations.ts';
import { type Statement, statement, type UnitResult } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import { agentLabel } from '../shared/agent-label.ts';
import { type Actor, type Context, seconds } from '../shared/context.ts';
import { announceEnd, type Ending, endStatements, ignoreFinished } from './operation-end.ts';

/**
 * Cancels one operation: at once when no agent has it, otherwise the agent is asked and its word is waited for.
 * @throws MusterError operation_not_found, operation_finished
 */
export async function cancelOperation(context: Context, actor: Actor, operationId: string): Promise<void> {
  const { db } = context;
  const operation = await db.get(operationById, { operation_id: operationId });
  if (!operation || operation.kind === 'drift') throw new MusterError('operation_not_found');
  if (hasEnded(operation.status)) throw new MusterError('operation_finished', `the operation has ${operation.status}`);
  const label = await agentLabel(context, operation.node_id);
  if (operation.dispatched_at === null) {
    const ending: Ending = { status: 'cancelled', error: `cancelled by ${actor.name}`, summary: null, startedAt: null };
    try {
      await db.write({
        name: 'operations/cancel',
        statements: endStatements(context, operation, ending, actor, label, true),
      });
      return announceEnd(context, operation, 'cancelled');
    } catch (error) {
      // It was sent in this moment: ask the agent instead.
      ignoreFinished(error);
    }
  }
  await db.write({
    name: 'operations/request cancel',
    statements: [
      statement(
        requestCancel,
        { operation_id: operationId, now: seconds(context.now()) },
        { expect: 'changed', else: 'operation_finished' },
      ),
      audited(context, {
        type: 'state.cancel_requested',
        actor,
        target: { type: 'agent', id: operation.node_id, name: label },
        summary: `${operation.kind} on ${label} is to be cancelled`,
        metadata: { operation_id: operationId },
      }),
    ],
  });
  context.bus.publish({ type: 'cancel', node_id: operation.node_id, operation_id: operationId });
}

/**
 * Ends everything open of one agent, as part of the unit that rejects or removes it.
 * @returns the statements, and what to call with the unit's result after the commit
 */
export async function cancelling(context: Context, actor: Actor, nodeId: string, label: string, reason: string) {
  const finished_at = seconds(context.now());
  const end = statement(endAllOpen, { node_id: nodeId, status: 'cancelled', finished_at, error: reason });
  const open = await context.db.all(openOperations, { node_id: nodeId });
  const statements: Statement[] = [
    statement(endOpenRunResults, { node_id: nodeId, status: 'cancelled', error: reason }),
    end,
    ...open.map(({ operation_id, kind }) =>
      audited(context, {
        type: 'state.cancelled',
        actor,
        target: { type: 'agent', id: nodeId, name: label },
        summary: `${kind} on ${label} cancelled: ${reason}`,
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
