import { MusterError } from '@muster/protocol';
import { addOperator, getOperator, listOperators, removeOperator } from '../../../domain/operators/operators.ts';
import { actorIn } from '../../../domain/operators/sessions.ts';
import type { SignIn } from '../../../domain/operators/sign-in.ts';
import type { Context } from '../../../domain/shared/context.ts';
import type { Handlers } from '../../server/handlers.ts';
import { paged } from '../../server/page.ts';

/**
 * @param address returns the console URL for the origin at which a client reached the API; null for an unknown origin
 */
export function operatorHandlers(context: Context, signIn: SignIn, address: (reached: string | null) => string) {
  return {
    challenge: async ({ body: { public_key, form }, request }) => ({
      ...(await signIn.challenge(public_key, form === 2, request)),
      ...(form === undefined ? {} : { form }),
    }),
    verify: ({ body: { public_key, signature, server, nonce }, request }) => {
      if ((server === undefined) !== (nonce === undefined)) {
        const path = server === undefined ? '/server' : '/nonce';
        const message = 'server and nonce must be sent together';
        throw new MusterError('invalid_input', message, [{ path, message }]);
      }
      const bound = server === undefined || nonce === undefined ? null : { server, nonce };
      return signIn.verify(public_key, signature, bound, request);
    },
    renew: ({ session }) => signIn.renew(session.token_hash),
    getSession: ({ session: { operator_id, username, role } }) => ({ operator_id, username, role }),
    webLogin: async ({ session, request }) => {
      const code = await signIn.webCode(session.token_hash);
      return { code, url: `${address(request.origin)}/login#code=${code}` };
    },
    redeemWebLogin: ({ body, request }) => signIn.redeem(body.code, request),
    listOperators: async ({ query }) =>
      paged(await listOperators(context, query.include_removed === 'true', query), query),
    addOperator: ({ body, session }) =>
      addOperator(context, actorIn(session), { ...body, role: body.role ?? 'operator' }),
    getOperator: ({ params }) => getOperator(context, params.operator_id),
    removeOperator: async ({ params, session }) => {
      await removeOperator(context, actorIn(session), params.operator_id);
    },
    removeOperatorReporting: ({ params, session }) => removeOperator(context, actorIn(session), params.operator_id),
  } satisfies Partial<Handlers>;
}
