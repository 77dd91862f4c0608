import { getOverview } from '../../../domain/fleet/overview.ts';
import type { Context } from '../../../domain/shared/context.ts';
import type { Handlers } from '../../server/handlers.ts';

export function overviewHandlers(context: Context) {
  return {
    getOverview: ({ session }) => getOverview(context, session.operator_id),
  } satisfies Partial<Handlers>;
}
