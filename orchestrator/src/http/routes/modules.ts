import { orderModules } from '../../domain/modules/module-order.ts';
import {
  getModule,
  listModules,
  listRevisions,
  removeModule,
  uploadModule,
  validateModule,
} from '../../domain/modules/modules.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function moduleHandlers(context: Context) {
  return {
    listModules: async ({ query }) => paged(await listModules(context, query), query),
    uploadModule: ({ body, session }) => uploadModule(context, actorIn(session), body.name, body.content),
    getModule: ({ params, query }) => getModule(context, params.name, query.revision),
    listModuleRevisions: async ({ params, query }) => paged(await listRevisions(context, params.name, query), query),
    removeModule: ({ params, session }) => removeModule(context, actorIn(session), params.name),
    orderModules: ({ body }) => orderModules(context, body),
    validateModule: ({ body }) => validateModule(body.content),
  } satisfies Partial<Handlers>;
}
