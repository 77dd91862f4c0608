import { liveSession } from '../../store/queries/operators.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Actor, type Context, seconds } from './context.ts';

/** Requires that the actor's session, if any, is live. `audited` includes this check. */
export function inSession({ now }: Pick<Context, 'now'>, { session }: Actor): Statement[] {
  if (session === undefined) return [];
  const live = { session, now: seconds(now()) };
  return [statement(liveSession, live, { expect: 'row', else: 'unauthenticated' })];
}

/**
 * For effects outside the database, and for work that continues once begun: call it just before the effect.
 * @returns the actor without its session, so that recording the work does not depend on it
 * @throws MusterError unauthenticated, once the session has ended
 */
export async function stillSignedIn(context: Pick<Context, 'db' | 'now'>, actor: Actor): Promise<Actor> {
  const { session: _, ...rest } = actor;
  const statements = inSession(context, actor);
  if (statements.length > 0) await context.db.write({ name: 'sessions/require', statements });
  return rest;
}
