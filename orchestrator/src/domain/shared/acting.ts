import { liveSession } from '../../store/queries/sessions.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Actor, type Context, seconds } from './context.ts';

/**
 * Returns statements that fail if the actor's sign-in session has ended. The statements of `audited` already include
 * them.
 */
export function inSession({ now }: Pick<Context, 'now'>, { session }: Actor): Statement[] {
  if (session === undefined) return [];
  const live = { session, now: seconds(now()) };
  return [statement(liveSession, live, { expect: 'row', else: 'unauthenticated' })];
}

/**
 * Checks that the actor's sign-in session has not ended. Call this immediately before an effect outside the database,
 * or before long work that must continue even if the session ends.
 * @returns the actor without its session, so that the work can be recorded after the session has ended
 * @throws MusterError unauthenticated
 */
export async function stillSignedIn(context: Pick<Context, 'db' | 'now'>, actor: Actor): Promise<Actor> {
  const { session: _, ...rest } = actor;
  const statements = inSession(context, actor);
  if (statements.length > 0) await context.db.write({ name: 'sessions/require', statements });
  return rest;
}
