import { markLastSeen } from '../../store/queries/agents/agents.ts';
import { statement } from '../../store/transaction.ts';
import type { Context } from '../shared/context.ts';

/** Maximum number of agents written in one transaction. */
const atOnce = 500;

/**
 * Returns a function that records when a disconnected agent was last heard from. Thousands of agents may disconnect at
 * the same time, so agents that disconnect during a write share the next transaction.
 */
export function createDepartures({ db, bus }: Pick<Context, 'db' | 'bus'>) {
  let waiting = new Map<string, number>();
  let next: Promise<void> | null = null;
  let current: Promise<unknown> = Promise.resolve();

  const write = async (departed: ReadonlyMap<string, number>) => {
    const statements = [...departed].map(([node_id, at]) => statement(markLastSeen, { node_id, at }));
    for (let start = 0; start < statements.length; start += atOnce)
      await db.write({ name: 'agents/gone', statements: statements.slice(start, start + atOnce) });
    for (const [node_id, heard_at] of departed) bus.publish({ type: 'agent_departed', node_id, heard_at });
  };

  /** Resolves once it is committed. */
  return (nodeId: string, lastContactAt: number): Promise<void> => {
    waiting.set(nodeId, Math.max(lastContactAt, waiting.get(nodeId) ?? 0));
    next ??= current
      .catch(() => {})
      .then(() => {
        const departed = waiting;
        waiting = new Map();
        next = null;
        const written = write(departed);
        current = written;
        return written;
      });
    return next;
  };
}
