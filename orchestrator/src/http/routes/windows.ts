import { createWindow, getWindow, listWindows, removeWindow, updateWindow } from '../../domain/modules/windows.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function windowHandlers(context: Context) {
  return {
    listWindows: async ({ query }) => paged(await listWindows(context, query), query),
    getWindow: ({ params }) => getWindow(context, params.id),
    createWindow: ({ body, session }) => createWindow(context, actorIn(session), body),
    updateWindow: ({ params, body, session }) => updateWindow(context, actorIn(session), params.id, body),
    removeWindow: ({ params, session }) => removeWindow(context, actorIn(session), params.id),
  } satisfies Partial<Handlers>;
}
