import type { Discover } from '../../domain/agents/discovery.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Handlers } from '../server/handlers.ts';
import { createDiscoveryRate } from '../server/rate.ts';

export function discoveryHandlers(discover: Discover) {
  const admit = createDiscoveryRate();
  return {
    discover: async ({ body, session }) => {
      await admit(session.operator_id);
      return discover(actorIn(session), body.target);
    },
  } satisfies Partial<Handlers>;
}
