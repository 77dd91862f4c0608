import { endedStale } from '@muster/protocol';
import { apiPrefix, type Operation, type OperationOutput } from '@muster/protocol/http';
import { requireAgent } from '../../domain/agents/agents.ts';
import { cancelOperation } from '../../domain/operation-end/cancellation.ts';
import type { LiveOutput } from '../../domain/operations/live-output.ts';
import type { Waiting } from '../../domain/operations/operation-waiting.ts';
import {
  awaitOperation,
  listOperations,
  type OperationInPages,
  type OperationRequest,
  readOperation,
  readOutput,
  submitOperation,
} from '../../domain/operations/operations.ts';
import { refusalOf } from '../../domain/operations/plan-binding.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, type JsonPieces, Reply, type WorkRequest } from '../server/handlers.ts';
import { withEntries, withLists } from '../server/json-pieces.ts';

const operationBody = (operation: OperationInPages) => withLists<Operation>({ ...operation });

export function operationHandlers(context: Context, waiting: Waiting, liveOutput: Pick<LiveOutput, 'of'>) {
  const operate = async (
    { session, respondAsync, request }: WorkRequest,
    agent: string,
    requested: Omit<OperationRequest, 'queue'> & { offline?: 'report' | 'queue' | undefined },
  ): Promise<Reply<200, JsonPieces<Operation>> | Reply<202, JsonPieces<Operation>>> => {
    const { offline, ...rest } = requested;
    const submission = { ...rest, queue: respondAsync && offline !== 'report' };
    const id = await submitOperation(context, actorIn(session), agent, submission);
    const location = { location: `${apiPrefix}/state/operations/${id}` };
    if (respondAsync) return new Reply(202, operationBody(await readOperation(context, id)), location);
    const { operation, ended } = await awaitOperation(context, waiting, id, request.signal);
    if (endedStale(operation)) throw await refusalOf(context, operation);
    const body = operationBody(operation);
    return ended ? new Reply(200, body) : new Reply(202, body, location);
  };

  return {
    applyAgent: (call) => operate(call, call.params.node_id, { kind: 'apply', ...call.body }),
    planAgent: (call) => operate(call, call.params.node_id, { kind: 'plan', ...call.body }),
    listAgentOperations: async ({ params, query }) => {
      const { node_id } = await requireAgent(context, params.node_id);
      return listOperations(context, { ...query, agent: node_id });
    },
    getOperationOutput: async ({ params }) =>
      withEntries<OperationOutput>({
        ...(await readOutput(context, liveOutput, params.node_id, params.operation_id)),
      }),
    listOperations: ({ query }) => listOperations(context, query),
    getOperation: async ({ params }) => operationBody(await readOperation(context, params.operation_id)),
    cancelOperation: async ({ params, session }) => {
      await cancelOperation(context, actorIn(session), params.operation_id);
      return operationBody(await readOperation(context, params.operation_id));
    },
  } satisfies Partial<Handlers>;
}
