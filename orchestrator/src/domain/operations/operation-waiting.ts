import { endedOfWaiting } from '../../store/queries/operations/operations.ts';
import type { Context } from '../shared/context.ts';

/** Lets requests wait until an operation or a run has ended. */
export interface Waiting {
  /**
   * Resolves when a hint announces the end, at the timeout, or when the signal aborts. The caller then reads the rows.
   * @param id ID of an operation or a run
   */
  untilEnded(id: string, milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** Wakes the requests that wait for an operation or a run that another process has ended. */
  poll(): Promise<void>;
  close(): void;
}

export function createWaiting({ db, bus }: Pick<Context, 'db' | 'bus'>): Waiting {
  const waiting = new Map<string, Set<() => void>>();
  const wake = (id: string) => {
    const waiters = waiting.get(id);
    if (waiters) for (const waiter of [...waiters]) waiter();
  };
  const unsubscribe = bus.subscribe((hint) => {
    if (hint.type === 'operation_ended') wake(hint.operation_id);
    else if (hint.type === 'run_ended') wake(hint.run_id);
  });
  return {
    untilEnded(id, milliseconds, signal) {
      if (signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', done);
          const waiters = waiting.get(id);
          waiters?.delete(done);
          if (waiters?.size === 0) waiting.delete(id);
          resolve();
        };
        const timer = setTimeout(done, milliseconds);
        signal?.addEventListener('abort', done, { once: true });
        const waiters = waiting.get(id);
        if (waiters) waiters.add(done);
        else waiting.set(id, new Set([done]));
      });
    },
    async poll() {
      if (waiting.size === 0) return;
      for (const { id } of await db.all(endedOfWaiting, { ids: [...waiting.keys()] })) wake(id);
    },
    close() {
      unsubscribe();
      for (const id of [...waiting.keys()]) wake(id);
    },
  };
}

/**
 * Repeats a read until it returns a result. Waits for a hint before each repetition.
 * @param look reads the result; returns null if there is none yet
 * @param deadline Unix milliseconds
 * @returns null if the deadline passed or the signal aborted first
 */
export async function untilFound<T>(
  context: Pick<Context, 'now'>,
  waiting: Waiting,
  id: string,
  look: () => Promise<T | null>,
  deadline: number,
  signal?: AbortSignal,
): Promise<T | null> {
  for (;;) {
    const enough = new AbortController();
    const left = deadline - context.now();
    // Starts waiting before the read, so that the operation cannot end unnoticed in between.
    const woken = waiting.untilEnded(
      id,
      Math.max(left, 0),
      signal ? AbortSignal.any([enough.signal, signal]) : enough.signal,
    );
    try {
      const found = await look();
      if (found !== null) return found;
      if (left <= 0 || signal?.aborted) return null;
      await woken;
    } finally {
      enough.abort();
    }
  }
}
