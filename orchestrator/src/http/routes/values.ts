import { listValues } from '../../domain/operations/values.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function valueHandlers(context: Context) {
  return {
    listValues: async ({ params, query }) => paged(await listValues(context, params.node_id, query), query),
  } satisfies Partial<Handlers>;
}
