import { listReconcile } from '../../domain/drift/reconcile.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function reconcileHandlers(context: Context) {
  return {
    listReconcile: async ({ query }) =>
      paged(
        await listReconcile(context, {
          ...query,
          include_accepted: query.include_accepted === 'true',
          include_outdated: query.include_outdated === 'true',
        }),
        query,
      ),
  } satisfies Partial<Handlers>;
}
