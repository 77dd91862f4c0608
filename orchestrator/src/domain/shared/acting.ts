import { liveSession } from '../../store/queries/operators.ts';
import { type Statement, statement } from '../../store/transaction.ts';
import { type Actor, type Context, seconds } from './context.ts';

/** The precondition that the session of an actor, where it has one, is live. `audited` has it already. */
export function inSession({ now }: Pick<Context, 'now'>, { session }: Actor): Statement[] {
  if (session === undefined) return [];
  const live = { session, now: seconds(now()) };
  return [statement(liveSession, live, { expect: 'row', else: 'unauthenticated' })];
}

/**
 * For work whose effect is not in the database, or that goes on once begun: call just before the effect.
 * @returns the actor without its session, so that what is recorded of the work does not depend on it
 * @throws MusterError unauthenticated, once the session has ended
 */
export async function stillSignedIn(context: Pick<Context, 'db' | 'now'>, actor: Actor): Promise<Actor> {
  const { session: _, ...rest } = actor;
  const statements = inSession(context, actor);
  if (statements.length > 0) await context.db.write({ name: 'sessions/require', statements });
  return rest;
}
