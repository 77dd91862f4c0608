import type { Bus, QueuedOperation } from '../../bus/bus.ts';

/**
 * What hints say that agents are to do next, so that it need not be read to be sent. The rows still decide: whoever takes
 * something from here looks, in the write that marks it as sent, whether it is so.
 */
export interface ReadyWork {
  /** @returns what may be the only thing that the agent is to do; handed out once */
  take(nodeId: string): QueuedOperation | null;
  close(): void;
}

/** Beyond it the oldest are forgotten, and read when their agents have their turn. */
const kept = 10_000;

export function createReadyWork(bus: Pick<Bus, 'subscribe'>): ReadyWork {
  const ready = new Map<string, QueuedOperation>();
  const close = bus.subscribe((hint) => {
    if (hint.type === 'operation_ended') {
      if (ready.get(hint.node_id)?.operation_id === hint.operation_id) ready.delete(hint.node_id);
    } else if (hint.type === 'work') {
      // Of several things, rows tell the order.
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
