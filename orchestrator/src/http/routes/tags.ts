import { deleteOneTag, listTags, putOneTag, putTags } from '../../domain/agents/tags.ts';
import { actorIn } from '../../domain/operators/sessions.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';

export function tagHandlers(context: Context) {
  return {
    putTags: ({ params, body, session }) => putTags(context, actorIn(session), params.node_id, body.tags),
    putTag: ({ params, body, session }) => putOneTag(context, actorIn(session), params.node_id, params.key, body.value),
    deleteTag: ({ params, session }) => deleteOneTag(context, actorIn(session), params.node_id, params.key),
    listTags: () => listTags(context),
  } satisfies Partial<Handlers>;
}
