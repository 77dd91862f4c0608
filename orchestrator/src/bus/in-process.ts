import type { Bus, Hint } from './bus.ts';

/**
 * Creates a bus for a single process. Listeners run in a later event-loop turn, in hint order, never inside the commit
 * that publishes a hint.
 * @param onListenerError receives listener errors; other listeners are still called
 */
export function createInProcessBus(onListenerError: (error: unknown, hint: Hint) => void): Bus {
  const listeners = new Set<(hint: Hint) => void>();
  let queue: Hint[] = [];
  let waiting: (() => void)[] = [];
  let closed = false;

  function deliver(): void {
    const hints = queue;
    const served = waiting;
    queue = [];
    waiting = [];
    for (const hint of hints)
      for (const listener of listeners) {
        try {
          listener(hint);
        } catch (error) {
          onListenerError(error, hint);
        }
      }
    for (const resolve of served) resolve();
  }

  return {
    publish(hint) {
      if (closed) return;
      if (queue.length === 0) setImmediate(deliver);
      queue.push(hint);
    },
    delivered() {
      return queue.length === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve));
    },
    subscribe(listener) {
      // Wraps the listener in a new function, so that the same listener can subscribe twice.
      const own = (hint: Hint) => listener(hint);
      listeners.add(own);
      return () => listeners.delete(own);
    },
    async close() {
      closed = true;
      queue = [];
      listeners.clear();
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}
