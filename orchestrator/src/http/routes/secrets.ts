import type { Context } from '../../domain/context.ts';
import { rotateSecretsKey } from '../../domain/secret-rotation.ts';
import { changeSecret, createSecret, getSecret, listSecrets, removeSecret } from '../../domain/secrets.ts';
import { actorOf } from '../../domain/sign-in.ts';
import type { Handlers } from '../handlers.ts';
import { paged } from '../page.ts';

export function secretHandlers(context: Context) {
  return {
    listSecrets: async ({ query }) => paged(await listSecrets(context, query), query),
    createSecret: ({ body, session }) => createSecret(context, actorOf(session), body),
    getSecret: ({ params }) => getSecret(context, params.name),
    updateSecret: ({ params, body, session }) => changeSecret(context, actorOf(session), params.name, body),
    removeSecret: ({ params, session }) => removeSecret(context, actorOf(session), params.name),
    rotateSecretsKey: ({ session }) => rotateSecretsKey(context, actorOf(session)),
  } satisfies Partial<Handlers>;
}
