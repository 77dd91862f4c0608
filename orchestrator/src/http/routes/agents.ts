import type { Agent } from '@muster/protocol/http';
import {
  approvedMatching,
  deleteOneTag,
  getAgent,
  getAttributes,
  listAgents,
  listTags,
  putOneTag,
  putTags,
  removeAgent,
  requireSelector,
  setStatus,
} from '../../domain/agents.ts';
import type { Context } from '../../domain/context.ts';
import { type Advertised, createToken, listTokens, revokeToken } from '../../domain/enrolment.ts';
import { actorOf } from '../../domain/sign-in.ts';
import { Chunked, type Handlers } from '../handlers.ts';

const agentsPerChunk = 500;

function* inChunks(agents: readonly Agent[]): Generator<readonly Agent[]> {
  for (let start = 0; start < agents.length; start += agentsPerChunk) yield agents.slice(start, start + agentsPerChunk);
}

/** @param advertised where agents are told to dial; asked for when needed, since a free port is known only then */
export function agentHandlers(context: Context, advertised: () => Advertised) {
  return {
    listAgents: async ({ query }) => new Chunked(inChunks(await listAgents(context, query))),
    getAgent: ({ params }) => getAgent(context, params.node_id),
    setAgentStatus: ({ params, body, session }) => setStatus(context, actorOf(session), params.node_id, body),
    removeAgent: ({ params, session }) => removeAgent(context, actorOf(session), params.node_id),
    getAttributes: ({ params }) => getAttributes(context, params.node_id),
    putTags: ({ params, body, session }) => putTags(context, actorOf(session), params.node_id, body.tags),
    putTag: ({ params, body, session }) => putOneTag(context, actorOf(session), params.node_id, params.key, body.value),
    deleteTag: ({ params, session }) => deleteOneTag(context, actorOf(session), params.node_id, params.key),
    listTags: async () => ({ tags: await listTags(context) }),
    matchSelector: async ({ body }) => {
      const matching = await approvedMatching(context, requireSelector(body.selector, '/selector'));
      return { matches: matching.map(({ node_id }) => node_id) };
    },
    createEnrolmentToken: ({ body, session }) => createToken(context, actorOf(session), body, advertised()),
    listEnrolmentTokens: () => listTokens(context),
    revokeEnrolmentToken: ({ params, session }) => revokeToken(context, actorOf(session), params.id),
  } satisfies Partial<Handlers>;
}
