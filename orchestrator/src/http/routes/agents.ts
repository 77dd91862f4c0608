import type { Agent } from '@muster/protocol/http';
import {
  agentsInTurns,
  approvedMatching,
  getAgentJson,
  getAttributes,
  isWholeFleet,
  listAgentPage,
  neverAppliedMatching,
  removeAgent,
  requireSelector,
  setStatus,
} from '../../domain/agents/agents.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, JsonBody } from '../server/handlers.ts';
import { inChunks, JoinedPages, pagedJson } from '../server/page.ts';

export function agentHandlers(context: Context) {
  const pages = new JoinedPages<Agent>();
  return {
    listAgents: async ({ query }) => {
      const { limit, offset } = query;
      if (limit === undefined) return inChunks(agentsInTurns(context, query));
      const request = { limit, offset };
      const join = isWholeFleet(query) ? (items: readonly Buffer[]) => pages.join(request, items) : undefined;
      return pagedJson(await listAgentPage(context, query, request), request, join);
    },
    getAgent: ({ params }) => {
      const json = getAgentJson(context, params.node_id);
      return json instanceof Promise ? json.then((bytes) => new JsonBody(bytes)) : new JsonBody(json);
    },
    setAgentStatus: ({ params, body, session }) => setStatus(context, actorIn(session), params.node_id, body),
    removeAgent: ({ params, session }) => removeAgent(context, actorIn(session), params.node_id),
    getAttributes: ({ params }) => getAttributes(context, params.node_id),
    matchSelector: async ({ body }) => {
      const selector = requireSelector(body.selector, '/selector');
      if (body.never_applied === true) return { matches: await neverAppliedMatching(context, selector) };
      const matching = await approvedMatching(context, selector);
      return { matches: matching.map(({ node_id }) => node_id) };
    },
  } satisfies Partial<Handlers>;
}
