import { MusterError } from '@muster/protocol';
import { consumeWebCode, insertWebCode, operatorById, webCodeByHash } from '../../store/queries/operators.ts';
import { liveSession, sessionByHash } from '../../store/queries/sessions.ts';
import { statement } from '../../store/transaction.ts';
import { audited } from '../audit/audit.ts';
import type { Refusals } from '../audit/refusals.ts';
import { inSession } from '../shared/acting.ts';
import { type Context, seconds } from '../shared/context.ts';
import { actorIn, actorOf, hashOfToken, type SessionClient, type Sessions, type SignedIn } from './sessions.ts';
import { recordSignInRefusal } from './sign-in-refusals.ts';

/** Issues and redeems single-use codes that a browser exchanges for a new sign-in session. */

/** Seconds for which a code is valid. */
const codeSecs = 60;

/**
 * Issues a code for a token's session.
 * @throws MusterError unauthenticated, also if the sign-in is too old for a console session; session_token_required for a
 * console session
 */
export async function issueWebCode(context: Context, sessions: Sessions, tokenHash: string): Promise<string> {
  const session = await sessions.readForConsole(tokenHash);
  const code = context.randomBytes(32).toString('base64url');
  await context.db.write({
    name: 'auth/web code',
    statements: [
      ...inSession(context, actorIn(session)),
      statement(insertWebCode, {
        code_hash: hashOfToken(code),
        operator_id: session.operator_id,
        session_hash: session.token_hash,
        signed_in_at: session.signed_in_at,
        expires_at: Math.min(seconds(context.now()) + codeSecs, session.expires_at),
      }),
      audited(context, {
        type: 'auth.web_login_requested',
        actor: actorOf(session),
        summary: `${session.username} requested a code to sign in on the web`,
      }),
    ],
  });
  return code;
}

/**
 * Exchanges a code for a session.
 * @throws MusterError login_code_invalid
 */
export async function redeemWebCode(
  context: Context,
  sessions: Sessions,
  refusals: Pick<Refusals, 'record'>,
  code: string,
  client: SessionClient,
): Promise<SignedIn> {
  const { db } = context;
  const code_hash = hashOfToken(code);
  const row = await db.get(webCodeByHash, { code_hash });
  const operator = row && (await db.get(operatorById, { operator_id: row.operator_id }));
  const invalid = () => new MusterError('login_code_invalid');
  try {
    const requester = row && (await db.get(sessionByHash, { token_hash: row.session_hash }));
    if (!operator || !requester || sessions.isRefused(requester)) throw invalid();
    const now = seconds(context.now());
    const session = { operator, signedInAt: row.signed_in_at, bound: requester.bound, client };
    return await sessions.open(session, [
      statement(consumeWebCode, { code_hash, now }, { expect: 'changed', else: 'login_code_invalid' }),
      // The code is valid only as long as the session that it was issued for.
      statement(liveSession, { session: row.session_hash, now }, { expect: 'row', else: 'login_code_invalid' }),
      audited(context, {
        type: 'auth.signed_in',
        actor: actorOf(operator),
        summary: `${operator.username} signed in on the web`,
        metadata: { web: true },
      }),
    ]);
  } catch (error) {
    if (!(error instanceof MusterError) || error.kind.status !== 401) throw error;
    // The error does not reveal the reason to clients without a valid code.
    const why = 'the web login code is invalid, used, or expired';
    await recordSignInRefusal(refusals, { operator, code: 'login_code_invalid', why, ip: client.ip });
    throw invalid();
  }
}
