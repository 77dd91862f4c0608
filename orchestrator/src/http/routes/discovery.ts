import type { Discover } from '../../domain/discovery.ts';
import { actorIn } from '../../domain/sign-in.ts';
import type { Handlers } from '../handlers.ts';
import { createDiscoveryRate } from '../rate.ts';

export function discoveryHandlers(discover: Discover) {
  const admit = createDiscoveryRate();
  return {
    discover: async ({ body, session }) => {
      await admit(session.operator_id);
      return discover(actorIn(session), body.target);
    },
  } satisfies Partial<Handlers>;
}
