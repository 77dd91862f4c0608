import { createToken, listTokens, revokeToken } from '../../domain/agents/enrollment.ts';
import type { EnrolmentEndpoints } from '../../domain/agents/enrollment-line.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

/** @param advertised returns the address for agents, whose port may be known only after startup */
export function enrollmentHandlers(context: Context, advertised: () => EnrolmentEndpoints) {
  return {
    createEnrolmentToken: ({ body, session }) => createToken(context, actorIn(session), body, advertised()),
    listEnrolmentTokens: async ({ query }) =>
      paged(await listTokens(context, query.include_ended === 'true', query), query),
    revokeEnrolmentToken: ({ params, session }) => revokeToken(context, actorIn(session), params.id),
  } satisfies Partial<Handlers>;
}
