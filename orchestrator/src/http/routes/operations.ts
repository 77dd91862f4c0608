import { MusterError } from '@muster/protocol';
import { apiPrefix, type Operation, type OperationOutput, type Run, type State } from '@muster/protocol/http';
import { requireAgent } from '../../domain/agents/agents.ts';
import { checkDrift, getDrift, latestDrift, listDrift, listLatestDrift } from '../../domain/drift/drift.ts';
import { acceptDrift, unacceptDrift } from '../../domain/drift/drift-acceptance.ts';
import { cancelOperation } from '../../domain/operation-end/cancellation.ts';
import type { LiveOutput } from '../../domain/operations/live-output.ts';
import type { Waiting } from '../../domain/operations/operation-waiting.ts';
import {
  awaitOperation,
  isStale,
  listOperations,
  type OperationInPages,
  type OperationRequest,
  readOperation,
  readOutput,
  readState,
  submitOperation,
} from '../../domain/operations/operations.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { RunRequest } from '../../domain/runs/run-basis.ts';
import type { RunConductor } from '../../domain/runs/run-conductor.ts';
import { cancelRun } from '../../domain/runs/run-end.ts';
import { awaitRun, listRuns, type RunAbout, type RunInPages, readRun, startRun } from '../../domain/runs/runs.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, type JsonPieces, Reply, type RequestFacts, type Session } from '../server/handlers.ts';
import { withEntries, withLists } from '../server/json-pieces.ts';
import { paged } from '../server/page.ts';

interface Asked {
  session: Session;
  respondAsync: boolean;
  request: RequestFacts;
}

const runBody = (run: RunInPages) => withLists<Run>({ ...run });
const operationBody = (operation: OperationInPages) => withLists<Operation>({ ...operation });

export function operationHandlers(
  context: Context,
  waiting: Waiting,
  conductor: RunConductor,
  liveOutput: Pick<LiveOutput, 'of'>,
) {
  const operate = async (
    { session, respondAsync, request }: Asked,
    agent: string,
    wanted: Omit<OperationRequest, 'queue'> & { offline?: 'report' | 'queue' | undefined },
  ): Promise<Reply<200, JsonPieces<Operation>> | Reply<202, JsonPieces<Operation>>> => {
    const { offline, ...rest } = wanted;
    const asked = { ...rest, queue: respondAsync && offline !== 'report' };
    const id = await submitOperation(context, actorIn(session), agent, asked);
    const location = { location: `${apiPrefix}/state/operations/${id}` };
    if (respondAsync) return new Reply(202, operationBody(await readOperation(context, id)), location);
    const { operation, ended } = await awaitOperation(context, waiting, id, request.signal);
    if (isStale(operation)) throw new MusterError('plan_stale', operation.error ?? undefined);
    const body = operationBody(operation);
    return ended ? new Reply(200, body) : new Reply(202, body, location);
  };

  const fanOut = async (
    { session, respondAsync, request }: Asked,
    about: RunAbout,
    wanted: RunRequest,
  ): Promise<Reply<200, JsonPieces<Run>> | Reply<202, JsonPieces<Run>>> => {
    const id = await startRun(context, conductor, actorIn(session), about, wanted);
    const location = { location: `${apiPrefix}/runs/${id}` };
    if (respondAsync) return new Reply(202, runBody(await readRun(context, id)), location);
    const { run, ended } = await awaitRun(context, waiting, id, request.signal);
    const body = runBody(run);
    return ended ? new Reply(200, body) : new Reply(202, body, location);
  };

  return {
    applyAgent: (call) => operate(call, call.params.node_id, { kind: 'apply', ...call.body }),
    planAgent: (call) =>
      operate(call, call.params.node_id, { kind: 'plan', modules: call.body.modules, ttl: call.body.ttl }),
    getState: async ({ params }) => withLists<State>({ ...(await readState(context, params.node_id)) }),
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
    applyAssignment: (call) => fanOut(call, call.params.name, { kind: 'apply', ...call.body }),
    planAssignment: (call) => fanOut(call, call.params.name, { kind: 'plan', ...call.body }),
    startRun: (call) => {
      const { node_ids, modules, ...request } = call.body;
      return fanOut(call, { node_ids, modules }, request);
    },
    listRuns: async ({ query }) => paged(await listRuns(context, query), query),
    getRun: async ({ params }) => runBody(await readRun(context, params.run_id)),
    cancelRun: async ({ params, session }) => {
      await cancelRun(context, actorIn(session), params.run_id);
      const run = await readRun(context, params.run_id);
      return run.finished_at === null ? new Reply(202, runBody(run)) : runBody(run);
    },
    checkDrift: ({ params, session, request }) =>
      checkDrift(context, waiting, actorIn(session), params.node_id, request.signal),
    listDrift: async ({ params, query }) => paged(await listDrift(context, params.node_id, query), query),
    listLatestDrift: async ({ query }) => paged(await listLatestDrift(context, query), query),
    latestDrift: ({ params }) => latestDrift(context, params.node_id),
    getDrift: ({ params }) => getDrift(context, params.drift_id),
    acceptDrift: ({ params, body, session }) => acceptDrift(context, actorIn(session), params.drift_id, body.reason),
    unacceptDrift: ({ params, session }) => unacceptDrift(context, actorIn(session), params.drift_id),
  } satisfies Partial<Handlers>;
}
