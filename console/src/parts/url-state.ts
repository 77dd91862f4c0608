import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

/**
 * A state of a page that is kept in its address, so that it can be linked to, and the way back leads to it.
 * @param name of the parameter; at its fallback it is left out
 * @returns the value, and what sets it: with `push` as a step of its own in the history, else in place
 */
export function useUrlState<T extends string = string>(
  name: string,
  fallback: NoInfer<T>,
): [T, (value: T, push?: boolean) => void] {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  const navigate = useNavigate();
  const set = useCallback(
    (value: T, push = false) =>
      void navigate({
        to: '.',
        search: ((previous: Record<string, string | undefined>) => {
          const { [name]: _, ...rest } = previous;
          return value === fallback ? rest : { ...rest, [name]: value };
        }) as never,
        replace: !push,
        resetScroll: false,
      }),
    [navigate, name, fallback],
  );
  return [(search[name] as T | undefined) ?? fallback, set];
}
