import { useNavigate, useSearch } from '@tanstack/react-router';
import { type ChangeEvent, useMemo } from 'react';
import { Input, Select } from '../form/field.tsx';
import { SearchInput } from '../form/search-input.tsx';
import { useDebouncedText } from '../form/use-debounced.ts';
import { useUrlState } from '../url-state.ts';

/** A list filter. Its value is stored in a URL parameter; an empty value matches everything. */
export type Filter = TextFilter | ChoiceFilter;

export interface TextFilter {
  /** Name of the URL parameter. */
  readonly name: string;
  readonly label: string;
  readonly placeholder: string;
}

export interface ChoiceFilter {
  /** Name of the URL parameter. */
  readonly name: string;
  readonly label: string;
  /** Label of the choice that matches everything. */
  readonly any: string;
  readonly options: readonly (string | { readonly value: string; readonly label: string })[];
}

export type FilterValues<Filters extends readonly Filter[]> = Readonly<Record<Filters[number]['name'], string>>;

/** Values of a list's filters by name. */
export type FilterTexts = Readonly<Record<string, string>>;

/**
 * Returns the filter values in the URL, without surrounding spaces. The object changes only with the filters and the
 * URL.
 */
export function useFilterValues<const Filters extends readonly Filter[]>(filters: Filters): FilterValues<Filters> {
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  return useMemo(
    () => Object.fromEntries(filters.map(({ name }) => [name, search[name]?.trim() ?? ''])) as FilterValues<Filters>,
    [filters, search],
  );
}

/** Returns a function that removes the filters from the URL, or undefined if none is set. */
export function useClearFilters(filters: readonly Filter[]): (() => void) | undefined {
  const values: FilterTexts = useFilterValues(filters);
  const navigate = useNavigate();
  if (Object.values(values).every((value) => value === '')) return undefined;
  const others = (previous: object) =>
    Object.fromEntries(Object.entries(previous).filter(([name]) => !(name in values)));
  return () => void navigate({ to: '.', search: others as never });
}

/** Reports whether any of the strings contains `query`, ignoring case. */
export const containsText = (query = '', ...texts: readonly (string | null | undefined)[]): boolean =>
  query === '' || texts.some((text) => text?.toLowerCase().includes(query.toLowerCase()));

/**
 * @param instant whether to update the URL on every keystroke; otherwise after a pause in typing
 * @param isForm whether the fields are below one another with visible labels, instead of in one line
 */
export function FilterFields({
  filters,
  instant,
  isForm = false,
}: {
  readonly filters: readonly Filter[];
  readonly instant: boolean;
  readonly isForm?: boolean;
}) {
  return filters.map((filter) =>
    'options' in filter ? (
      <ChoiceField key={filter.name} filter={filter} isForm={isForm} />
    ) : (
      <TextField key={filter.name} filter={filter} instant={instant} isForm={isForm} />
    ),
  );
}

function TextField({
  filter: { name, label, placeholder },
  instant,
  isForm,
}: {
  readonly filter: TextFilter;
  readonly instant: boolean;
  readonly isForm: boolean;
}) {
  const [value, setValue] = useUrlState(name, '');
  const typed = useDebouncedText(value, setValue);
  const field = instant ? { text: value, set: setValue } : typed;
  const input = {
    ...{ label, placeholder, value: field.text },
    onChange: (event: ChangeEvent<HTMLInputElement>) => field.set(event.target.value),
  };
  if (isForm) return <Input type="search" {...input} />;
  return (
    <div className="w-72 max-sm:w-auto max-sm:min-w-0 max-sm:flex-1 max-sm:basis-32">
      <SearchInput data-search="" {...input} />
    </div>
  );
}

function ChoiceField({
  filter: { name, label, any, options },
  isForm,
}: {
  readonly filter: ChoiceFilter;
  readonly isForm: boolean;
}) {
  const [value, setValue] = useUrlState(name, '');
  return (
    <div className={isForm ? undefined : 'w-40'}>
      <Select label={label} hideLabel={!isForm} value={value} onChange={(event) => setValue(event.target.value)}>
        <option value="">{any}</option>
        {options.map((option) =>
          typeof option === 'string' ? (
            <option key={option}>{option}</option>
          ) : (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ),
        )}
      </Select>
    </div>
  );
}
