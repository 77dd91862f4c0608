import { liveSession } from '../../store/queries/operators.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Actor, type Context, seconds } from './context.ts';

/** Requires that the actor's sign-in session, if any, is live. `audited` includes this check. */
export function inSession({ now }: Pick<Context, 'now'>, { session }: Actor): Statement[] {
  if (session === undefined) return [];
  const live = { session, now: seconds(now()) };
  return [statement(liveSession, live, { expect: 'row', else: 'unauthenticated' })];
}

/**
 * Checks the sign-in session before effects outside the database, and before long work that must not stop when the session
 * ends. Call it just before the effect.
 * @returns the actor without its session, so that recording the work does not depend on the session
 * @throws MusterError unauthenticated, once the session has ended
 */
export async function stillSignedIn(context: Pick<Context, 'db' | 'now'>, actor: Actor): Promise<Actor> {
  const { session: _, ...rest } = actor;
  const statements = inSession(context, actor);
  if (statements.length > 0) await context.db.write({ name: 'sessions/require', statements });
  return rest;
}
