import { newestOpen } from '../../store/queries/operations/operations.ts';
import type { Context } from '../shared/context.ts';

/**
 * Makes the next ids exceed those of the agents' open operations, because an agent runs its operations in the order of
 * their ids, and another process may be ahead of this process. Operations that are queued at the same time may run in
 * any order.
 */
export async function passOpenOperations(
  { db, passId }: Pick<Context, 'db' | 'passId'>,
  nodeIds: readonly string[],
): Promise<void> {
  // With SQLite, only this process queues operations.
  if (db.kind === 'sqlite' || nodeIds.length === 0) return;
  const newest = await db.get(newestOpen, { node_ids: nodeIds });
  if (newest?.operation_id) passId(newest.operation_id);
}
