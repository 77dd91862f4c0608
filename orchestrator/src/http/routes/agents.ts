import {
  agentTextsInTurns,
  approvedMatching,
  deleteOneTag,
  getAgentText,
  getAttributes,
  listAgentPage,
  listTags,
  putOneTag,
  putTags,
  removeAgent,
  requireSelector,
  setStatus,
} from '../../domain/agents/agents.ts';
import { createToken, listTokens, revokeToken } from '../../domain/agents/enrollment.ts';
import type { EnrolmentPlaces } from '../../domain/agents/enrollment-line.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, JsonBody } from '../server/handlers.ts';
import { inChunks, paged, pagedInChunks } from '../server/page.ts';

/** @param advertised returns the addresses for agents; a function, since a free port is known only after the start */
export function agentHandlers(context: Context, advertised: () => EnrolmentPlaces) {
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
    putTags: ({ params, body, session }) => putTags(context, actorIn(session), params.node_id, body.tags),
    putTag: ({ params, body, session }) => putOneTag(context, actorIn(session), params.node_id, params.key, body.value),
    deleteTag: ({ params, session }) => deleteOneTag(context, actorIn(session), params.node_id, params.key),
    listTags: () => listTags(context),
    matchSelector: async ({ body }) => {
      const matching = await approvedMatching(context, requireSelector(body.selector, '/selector'));
      return { matches: matching.map(({ node_id }) => node_id) };
    },
    createEnrolmentToken: ({ body, session }) => createToken(context, actorIn(session), body, advertised()),
    listEnrolmentTokens: async ({ query }) =>
      paged(await listTokens(context, query.include_ended === 'true', query), query),
    revokeEnrolmentToken: ({ params, session }) => revokeToken(context, actorIn(session), params.id),
  } satisfies Partial<Handlers>;
}
