import type { Context } from '../src/domain/shared/context.ts';
import { insertReplica, removeReplica } from '../src/store/replicas.ts';

/** Registers another process in the database. @returns the context of that process */
export async function joined(context: Context, incarnation: string): Promise<Context> {
  await context.db.alone(insertReplica, { incarnation, name: incarnation, version: '0', started_at: 0 });
  return { ...context, incarnation };
}

/** Closes a process, as another process does when heartbeats are missing. */
export async function close({ db }: Context, incarnation: string): Promise<void> {
  await db.alone(removeReplica, { incarnation });
}
