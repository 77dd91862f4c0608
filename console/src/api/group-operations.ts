import type { Operation } from '@muster/protocol/http';
import { getOperation } from '@muster/protocol/http';
import { useCallback, useEffect, useRef, useState } from 'react';
import { call } from './client.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

/**
 * Groups finished operations by their effects. Loads each operation once, a few at a time, and keeps one example per
 * group, so that memory use stays low for a run on ten thousand agents.
 */

export interface OperationGroups {
  /**
   * Fingerprints of the loaded operations, by operation id. Operations with the same effects have the same fingerprint.
   */
  readonly likeness: ReadonlyMap<string, string>;
  /** The first loaded operation with each fingerprint. */
  readonly examples: ReadonlyMap<string, Operation>;
  /** Number of operations that still have to be loaded. */
  readonly left: number;
  readonly error: unknown;
  readonly retry: () => void;
}

const atOnce = 6;

/** @param operationIds ids of finished operations, in the order in which to load them */
export function useOperationGroups(
  operationIds: readonly string[],
  likenessOf: (operation: Operation) => string,
): OperationGroups {
  const known = useRef({ likeness: new Map<string, string>(), examples: new Map<string, Operation>() });
  const [, render] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` triggers a retry
  useEffect(() => {
    const { likeness, examples } = known.current;
    const abort = new AbortController();
    const todo = operationIds.filter((id) => !likeness.has(id));
    let at = 0;
    // Renders once for all operations that are loaded within 120 ms.
    let timer = 0;
    const renderSoon = () => {
      timer ||= window.setTimeout(() => {
        timer = 0;
        render((count) => count + 1);
      }, 120);
    };
    const work = async () => {
      while (at < todo.length && !abort.signal.aborted) {
        const id = todo[at++] as string;
        const cached = queryClient.getQueryState<Operation>(keys.operation(id));
        // A stale record may describe the operation before it finished.
        const operation =
          (cached?.isInvalidated === false ? cached.data : undefined) ??
          (await call(getOperation, { params: { operation_id: id }, signal: abort.signal }));
        const text = likenessOf(operation);
        likeness.set(id, text);
        if (!examples.has(text)) examples.set(text, operation);
        renderSoon();
      }
    };
    setError(null);
    Promise.all(Array.from({ length: Math.min(atOnce, todo.length) }, work)).catch((thrown: unknown) => {
      if (abort.signal.aborted) return;
      abort.abort();
      setError(thrown);
    });
    return () => {
      abort.abort();
      window.clearTimeout(timer);
    };
  }, [operationIds, likenessOf, tries]);

  const { likeness, examples } = known.current;
  return {
    likeness,
    examples,
    left: operationIds.reduce((left, id) => left + (likeness.has(id) ? 0 : 1), 0),
    error,
    retry: useCallback(() => setTries((count) => count + 1), []),
  };
}
