import type { Operation } from '@muster/protocol/http';
import { getOperation } from '@muster/protocol/http';
import { useCallback, useEffect, useRef, useState } from 'react';
import { call } from './client.ts';
import { queryClient } from './query-client.ts';
import { keys } from './query-keys.ts';

/**
 * Which ended operations did the same: each is asked for once, a few at a time, and of many that are alike one is kept.
 * So a run over ten thousand agents is as many small answers at the most, and never as many operations in memory.
 */

export interface OperationGroups {
  /** By operation id: what it did, as a text that is equal where that is. */
  readonly likeness: ReadonlyMap<string, string>;
  /** By that text: the first that was seen. */
  readonly examples: ReadonlyMap<string, Operation>;
  /** How many of those wanted are not compared yet. */
  readonly left: number;
  readonly error: unknown;
  /** Tries again what could not be loaded. */
  readonly retry: () => void;
}

const atOnce = 6;

/** @param wanted ids of operations that have ended; the first come first */
export function useOperationGroups(
  wanted: readonly string[],
  likenessOf: (operation: Operation) => string,
): OperationGroups {
  const known = useRef({ likeness: new Map<string, string>(), examples: new Map<string, Operation>() });
  const [, draw] = useState(0);
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `tries` says that it is tried again
  useEffect(() => {
    const { likeness, examples } = known.current;
    const abort = new AbortController();
    const todo = wanted.filter((id) => !likeness.has(id));
    let at = 0;
    // Not a drawing for each answer.
    let drawing = 0;
    const drawSoon = () => {
      drawing ||= window.setTimeout(() => {
        drawing = 0;
        draw((count) => count + 1);
      }, 120);
    };
    const work = async () => {
      while (at < todo.length && !abort.signal.aborted) {
        const id = todo[at++] as string;
        const operation =
          queryClient.getQueryData<Operation>(keys.operation(id)) ??
          (await call(getOperation, { params: { operation_id: id }, signal: abort.signal }));
        const text = likenessOf(operation);
        likeness.set(id, text);
        if (!examples.has(text)) examples.set(text, operation);
        drawSoon();
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
      window.clearTimeout(drawing);
    };
  }, [wanted, likenessOf, tries]);

  const { likeness, examples } = known.current;
  return {
    likeness,
    examples,
    left: wanted.reduce((left, id) => left + (likeness.has(id) ? 0 : 1), 0),
    error,
    retry: useCallback(() => setTries((count) => count + 1), []),
  };
}
