import { actorIn } from '../../domain/operators/sessions.ts';
import { rotateSecretsKey } from '../../domain/secrets/secret-rotation.ts';
import { changeSecret, createSecret, getSecret, listSecrets, removeSecret } from '../../domain/secrets/secrets.ts';
import type { Context } from '../../domain/shared/context.ts';
import type { Handlers } from '../server/handlers.ts';
import { paged } from '../server/page.ts';

export function secretHandlers(context: Context) {
  return {
    listSecrets: async ({ query }) => paged(await listSecrets(context, query), query),
    createSecret: ({ body, session }) => createSecret(context, actorIn(session), body),
    getSecret: ({ params }) => getSecret(context, params.name),
    updateSecret: ({ params, body, session }) => changeSecret(context, actorIn(session), params.name, body),
    removeSecret: ({ params, session }) => removeSecret(context, actorIn(session), params.name),
    rotateSecretsKey: ({ session }) => rotateSecretsKey(context, actorIn(session)),
  } satisfies Partial<Handlers>;
}
