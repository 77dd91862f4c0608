import type { Context } from '../../domain/context.ts';
import { rotateSecretsKey } from '../../domain/secret-rotation.ts';
import { changeSecret, createSecret, getSecret, listSecrets, removeSecret } from '../../domain/secrets.ts';
import { actorIn } from '../../domain/sign-in.ts';
import type { Handlers } from '../handlers.ts';
import { paged } from '../page.ts';

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
