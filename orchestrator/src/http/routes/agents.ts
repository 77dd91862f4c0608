import {
  agentTextsInTurns,
  approvedMatching,
  getAgentText,
  getAttributes,
  listAgentPage,
  removeAgent,
  requireSelector,
  setStatus,
} from '../../domain/agents/agents.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, JsonBody } from '../server/handlers.ts';
import { inChunks, pagedInChunks } from '../server/page.ts';

export function agentHandlers(context: Context) {
  return {
    listAgents: async ({ query }) => {
      const { limit, offset } = query;
      if (limit === undefined) return inChunks(agentTextsInTurns(context, query));
      return pagedInChunks(await listAgentPage(context, query, { limit, offset }), { limit, offset });
    },
    getAgent: async ({ params }) => new JsonBody(await getAgentText(context, params.node_id)),
    setAgentStatus: ({ params, body, session }) => setStatus(context, actorIn(session), params.node_id, body),
    removeAgent: ({ params, session }) => removeAgent(context, actorIn(session), params.node_id),
    getAttributes: ({ params }) => getAttributes(context, params.node_id),
    matchSelector: async ({ body }) => {
      const matching = await approvedMatching(context, requireSelector(body.selector, '/selector'));
      return { matches: matching.map(({ node_id }) => node_id) };
    },
  } satisfies Partial<Handlers>;
}
