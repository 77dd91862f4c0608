import { useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback } from 'react';

/** Converts URL parameters to and from plain text, without JSON quotes, so that operators can type them. */
export const parseSearch = (text: string): Record<string, string> => Object.fromEntries(new URLSearchParams(text));

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = Object.entries(search).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const text = new URLSearchParams(parameters).toString();
  return text === '' ? '' : `?${text}`;
}

/** Value of the parameter `edit` for a new item. No item has this name or id. */
export const newItem = 'new!';

/**
 * Stores page state in a URL parameter, so that links and the back button restore it. The parameter is omitted while it
 * has the fallback value.
 * @returns the value and its setter; with `push`, a change adds an entry to the browser history
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
