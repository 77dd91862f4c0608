import type { Context } from '../../domain/context.ts';
import { actorOf } from '../../domain/sign-in.ts';
import { createWindow, getWindow, listWindows, removeWindow, updateWindow } from '../../domain/windows.ts';
import type { Handlers } from '../handlers.ts';
import { paged } from '../page.ts';

export function windowHandlers(context: Context) {
  return {
    listWindows: async ({ query }) => paged(await listWindows(context, query), query),
    getWindow: ({ params }) => getWindow(context, params.id),
    createWindow: ({ body, session }) => createWindow(context, actorOf(session), body),
    updateWindow: ({ params, body, session }) => updateWindow(context, actorOf(session), params.id, body),
    removeWindow: ({ params, session }) => removeWindow(context, actorOf(session), params.id),
  } satisfies Partial<Handlers>;
}
