import type { Context } from '../../domain/context.ts';
import { getOverview } from '../../domain/overview.ts';
import { listReconcile } from '../../domain/reconcile.ts';
import type { Handlers } from '../handlers.ts';
import { paged } from '../page.ts';

export function fleetHandlers(context: Context) {
  return {
    getOverview: ({ session }) => getOverview(context, session.operator_id),
    listReconcile: async ({ query }) =>
      paged(await listReconcile(context, { ...query, include_accepted: query.include_accepted === 'true' }), query),
  } satisfies Partial<Handlers>;
}
