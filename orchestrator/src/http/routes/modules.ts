import { orderModules } from '../../domain/modules/module-order.ts';
import {
  getModule,
  getModuleFile,
  listModules,
  listRevisions,
  removeModule,
  uploadFolder,
  uploadModule,
  validateModule,
} from '../../domain/modules/modules.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import { type Handlers, Stream } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function moduleHandlers(context: Context) {
  return {
    listModules: async ({ query }) => paged(await listModules(context, query), query),
    uploadModule: ({ body, archive, session, requireDiskSpace }) =>
      archive === null
        ? uploadModule(context, actorIn(session), body.name, body.content, body.files_of)
        : uploadFolder(context, actorIn(session), archive, requireDiskSpace),
    getModule: ({ params, query }) => getModule(context, params.name, query.revision),
    getModuleFile: async ({ params, query }) =>
      new Stream(await getModuleFile(context, params.name, query.path, query.revision)),
    listModuleRevisions: async ({ params, query }) => paged(await listRevisions(context, params.name, query), query),
    removeModule: ({ params, session }) => removeModule(context, actorIn(session), params.name),
    orderModules: ({ body }) => orderModules(context, body),
    validateModule: ({ body }) => validateModule(context, body.content, body.files_of),
  } satisfies Partial<Handlers>;
}
