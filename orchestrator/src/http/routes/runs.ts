import { apiPrefix, type Run } from '@muster/protocol/http';
import type { Waiting } from '../../domain/operations/operation-waiting.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { RunRequest } from '../../domain/runs/run-basis.ts';
import type { RunConductor } from '../../domain/runs/run-conductor.ts';
import { cancelRun } from '../../domain/runs/run-end.ts';
import { awaitRun, listRuns, type RunAbout, type RunInPages, readRun, startRun } from '../../domain/runs/runs.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, type JsonPieces, Reply, type WorkRequest } from '../server/handlers.ts';
import { withLists } from '../server/json-pieces.ts';
import { paged } from '../server/page.ts';

const runBody = (run: RunInPages) => withLists<Run>({ ...run });

export function runHandlers(context: Context, waiting: Waiting, conductor: RunConductor) {
  const fanOut = async (
    { session, respondAsync, request }: WorkRequest,
    about: RunAbout,
    requested: RunRequest,
  ): Promise<Reply<200, JsonPieces<Run>> | Reply<202, JsonPieces<Run>>> => {
    const id = await startRun(context, conductor, actorIn(session), about, requested);
    const location = { location: `${apiPrefix}/runs/${id}` };
    if (respondAsync) return new Reply(202, runBody(await readRun(context, id)), location);
    const { run, ended } = await awaitRun(context, waiting, id, request.signal);
    const body = runBody(run);
    return ended ? new Reply(200, body) : new Reply(202, body, location);
  };

  return {
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
  } satisfies Partial<Handlers>;
}
