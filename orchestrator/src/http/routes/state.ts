import type { State } from '@muster/protocol/http';
import { readState } from '../../domain/operations/state.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { withLists } from '../server/json-pieces.ts';

export function stateHandlers(context: Context) {
  return {
    getState: async ({ params }) => withLists<State>({ ...(await readState(context, params.node_id)) }),
  } satisfies Partial<Handlers>;
}
