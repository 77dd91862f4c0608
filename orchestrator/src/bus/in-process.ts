import { AskFailed } from './asks.ts';
import type { Bus, Hint, HintListener, HintSource } from './bus.ts';

/**
 * Creates a bus for a single process. Listeners run in a later event-loop turn, in hint order, never inside the commit
 * that publishes a hint.
 * @param onListenerError receives listener errors; other listeners are still called
 */
export function createInProcessBus(onListenerError: (error: unknown, hint: Hint) => void): Bus {
  const delivery = new HintDelivery(onListenerError);
  const publish = (hint: Hint) => delivery.add(hint, 'own');
  return {
    publish,
    publishHere: publish,
    delivered: () => delivery.delivered(),
    subscribe: (listener) => delivery.subscribe(listener),
    ask: async () => {
      throw new AskFailed('unreachable');
    },
    answer: () => () => {},
    close: async () => delivery.close(),
  };
}

/** Delivers hints to the subscribers in this process. */
export class HintDelivery {
  readonly #onListenerError: (error: unknown, hint: Hint) => void;
  readonly #listeners = new Set<HintListener>();
  #queue: { readonly hint: Hint; readonly source: HintSource }[] = [];
  #waiting: (() => void)[] = [];
  #closed = false;

  constructor(onListenerError: (error: unknown, hint: Hint) => void) {
    this.#onListenerError = onListenerError;
  }

  add(hint: Hint, source: HintSource): void {
    if (this.#closed) return;
    if (this.#queue.length === 0) setImmediate(() => this.#deliver());
    this.#queue.push({ hint, source });
  }

  delivered(): Promise<void> {
    return this.#queue.length === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  subscribe(listener: HintListener): () => void {
    // Wraps the listener in a new function, so that the same listener can subscribe twice.
    const own: HintListener = (hint, source) => listener(hint, source);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  close(): void {
    this.#closed = true;
    this.#queue = [];
    this.#listeners.clear();
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #deliver(): void {
    const queue = this.#queue;
    const served = this.#waiting;
    this.#queue = [];
    this.#waiting = [];
    for (const { hint, source } of queue)
      for (const listener of this.#listeners) {
        try {
          listener(hint, source);
        } catch (error) {
          this.#onListenerError(error, hint);
        }
      }
    for (const resolve of served) resolve();
  }
}
