import { Search } from 'lucide-react';
import type { ComponentProps } from 'react';
import { Input } from './field.tsx';

/** The magnifier at the start of a search field. Its container is `relative`, and the field has the class `pl-8`. */
export const SearchIcon = () => (
  <Search aria-hidden="true" className="pointer-events-none absolute top-2 left-2.5 size-4 text-muted max-sm:top-3.5" />
);

/** A search field. Its label is hidden, because its placeholder describes it. */
export const SearchInput = (props: Omit<ComponentProps<typeof Input>, 'hideLabel' | 'className'>) => (
  <div className="relative">
    <SearchIcon />
    <Input hideLabel type="search" className="pl-8" {...props} />
  </div>
);
