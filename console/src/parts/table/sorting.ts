import { useUrlState } from '../url-state.ts';
import type { Sorting } from './data-table.tsx';

/** How a table is sorted, in the address: `name`, or `-name` for the other way. */
export function useSorting(fallback: Sorting): [Sorting, (sorting: Sorting) => void] {
  const [text, setText] = useUrlState('sort', textOf(fallback));
  return [{ column: text.replace(/^-/, ''), descending: text.startsWith('-') }, (sorting) => setText(textOf(sorting))];
}

const textOf = ({ column, descending }: Sorting): string => (descending ? `-${column}` : column);
