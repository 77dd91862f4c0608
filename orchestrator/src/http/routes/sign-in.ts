import type { Context } from '../../domain/context.ts';
import { addOperator, getOperator, listOperators, removeOperator } from '../../domain/operators.ts';
import { actorOf, type SignIn } from '../../domain/sign-in.ts';
import type { Handlers } from '../handlers.ts';
import { paged } from '../page.ts';

/** @param address where people reach the console, given where this client reaches the API; null: it does not say */
export function signInHandlers(context: Context, signIn: SignIn, address: (reached: string | null) => string) {
  return {
    challenge: ({ body, request }) => signIn.challenge(body.public_key, request.ip),
    verify: ({ body, request }) => signIn.verify(body.public_key, body.signature, request.ip),
    logout: ({ session }) => signIn.logout(session.token_hash),
    renew: ({ session }) => signIn.renew(session.token_hash),
    getSession: ({ session: { operator_id, username, role } }) => ({ operator_id, username, role }),
    webLogin: async ({ session, request }) => {
      const code = await signIn.webCode(session.token_hash);
      return { code, url: `${address(request.origin)}/login#code=${code}` };
    },
    redeemWebLogin: ({ body, request }) => signIn.redeem(body.code, request.ip),
    listOperators: async ({ query }) =>
      paged(await listOperators(context, query.include_removed === 'true', query), query),
    addOperator: ({ body, session }) =>
      addOperator(context, actorOf(session), { ...body, role: body.role ?? 'operator' }),
    getOperator: ({ params }) => getOperator(context, params.operator_id),
    removeOperator: ({ params, session }) => removeOperator(context, actorOf(session), params.operator_id),
  } satisfies Partial<Handlers>;
}
