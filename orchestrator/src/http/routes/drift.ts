import { checkDrift, getDrift, latestDrift, listDrift, listLatestDrift } from '../../domain/drift/drift.ts';
import { acceptDrift, unacceptDrift } from '../../domain/drift/drift-acceptance.ts';
import type { Waiting } from '../../domain/operations/operation-waiting.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function driftHandlers(context: Context, waiting: Waiting) {
  return {
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
