import { useSyncExternalStore } from 'react';

/** Matches screens that are too narrow for columns. The widths are those of `fromClasses`. */
const narrow = Object.entries({ sm: '40rem', md: '48rem', lg: '64rem', xl: '80rem', '2xl': '96rem' }).map(
  ([from, width]) => ({ from, query: window.matchMedia(`not all and (min-width: ${width})`) }),
);

function subscribe(listener: () => void): () => void {
  for (const { query } of narrow) query.addEventListener('change', listener);
  return () => {
    for (const { query } of narrow) query.removeEventListener('change', listener);
  };
}

const hiddenFrom = (): string =>
  narrow
    .filter(({ query }) => query.matches)
    .map(({ from }) => from)
    .join(' ');

/** Returns the values of `Column.from` whose columns are hidden, separated by spaces. */
export const useHiddenWidths = (): string => useSyncExternalStore(subscribe, hiddenFrom);
