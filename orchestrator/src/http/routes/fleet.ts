import { listReconcile } from '../../domain/drift/reconcile.ts';
import { getOverview } from '../../domain/fleet/overview.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function fleetHandlers(context: Context) {
  return {
    getOverview: ({ session }) => getOverview(context, session.operator_id),
    listReconcile: async ({ query }) =>
      paged(await listReconcile(context, { ...query, include_accepted: query.include_accepted === 'true' }), query),
  } satisfies Partial<Handlers>;
}
