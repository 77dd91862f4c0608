import { useUrlState } from '../url-state.ts';
import type { Sorting } from './column.ts';

/** Stores a table's sort order in the URL: `name` is ascending, `-name` descending. */
export function useSorting(fallback: Sorting): [Sorting, (sorting: Sorting) => void] {
  const [text, setText] = useUrlState('sort', textOf(fallback));
  return [sortingOf(text), (sorting) => setText(textOf(sorting))];
}

/** Parses a sort order: `name` is ascending, `-name` descending. */
export const sortingOf = (text: string): Sorting => ({
  column: text.replace(/^-/, ''),
  descending: text.startsWith('-'),
});

const textOf = ({ column, descending }: Sorting): string => (descending ? `-${column}` : column);
