import type { Context } from '../src/domain/shared/context.ts';
import { insertReplica, removeReplica } from '../src/store/replicas.ts';

/** Adds another process on the database. Returns its context. */
export async function joined(context: Context, incarnation: string): Promise<Context> {
  await context.db.alone(insertReplica, { incarnation, name: incarnation, version: '0', started_at: 0 });
  return { ...context, incarnation };
}

/** Closes a process, as another one does when it sees no beat. */
export async function close({ db }: Context, incarnation: string): Promise<void> {
  await db.alone(removeReplica, { incarnation });
}
