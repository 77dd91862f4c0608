import type { Bus, QueuedOperation } from '../../bus/bus.ts';

/**
 * Cache of the operations that hints announce, so that they need not be read before dispatch. The rows decide: the
 * write that marks an operation as dispatched verifies it.
 */
export interface ReadyWork {
  /** @returns the operation that may be the only one of the agent. Each is returned once. */
  take(nodeId: string): QueuedOperation | null;
  close(): void;
}

/** Maximum number of entries; the oldest are evicted and read when their agents have their turn. */
const kept = 10_000;

export function createReadyWork(bus: Pick<Bus, 'subscribe'>): ReadyWork {
  const ready = new Map<string, QueuedOperation>();
  const close = bus.subscribe((hint) => {
    if (hint.type === 'operation_ended') {
      if (ready.get(hint.node_id)?.operation_id === hint.operation_id) ready.delete(hint.node_id);
    } else if (hint.type === 'work') {
      // With several operations, the rows decide the order.
      if (ready.delete(hint.node_id) || hint.operation === undefined) return;
      if (ready.size >= kept) ready.delete(ready.keys().next().value as string);
      ready.set(hint.node_id, hint.operation);
    }
  });
  return {
    take(nodeId) {
      const operation = ready.get(nodeId) ?? null;
      ready.delete(nodeId);
      return operation;
    },
    close,
  };
}
