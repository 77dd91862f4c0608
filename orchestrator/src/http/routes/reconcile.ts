import { createOffRanking } from '../../domain/drift/off-ranking.ts';
import { listReconcile } from '../../domain/drift/reconcile.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function reconcileHandlers(context: Context) {
  const ranking = createOffRanking(context);
  return {
    listReconcile: async ({ query }) => {
      const included = {
        include_accepted: query.include_accepted === 'true',
        include_outdated: query.include_outdated === 'true',
      };
      return paged(await listReconcile(context, { ...query, ...included }, ranking), query);
    },
  } satisfies Partial<Handlers>;
}
