import { ArrowDownNarrowWide, ArrowUpNarrowWide } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Button } from '../button.tsx';
import { Menu, MenuCheck, MenuHeading, MenuItem, MenuLine } from '../dialog/menu.tsx';
import type { Column, Sorting } from './column.ts';
import { FilterSheet } from './filter-sheet.tsx';

/** A button that opens the filters of a list on a phone, with the number of filters that are set. */
export function FilterButton({
  active,
  onClear,
  children,
}: {
  /** Number of filters that are set. */
  readonly active: number;
  readonly onClear: (() => void) | undefined;
  /** The fields of the filters. */
  readonly children: ReactNode;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <span className="relative">
        <Button
          aria-label={active === 0 ? 'Filters' : `Filters (${active} set)`}
          aria-haspopup="dialog"
          onClick={() => setOpen(true)}
        >
          Filters
        </Button>
        {active > 0 && (
          <span
            aria-hidden="true"
            className="pointer-events-none absolute -top-1.5 -right-1.5 flex h-4.5 min-w-4.5 items-center justify-center rounded-full bg-accent px-1 font-semibold text-2xs text-on-accent"
          >
            {active}
          </span>
        )}
      </span>
      {isOpen && (
        <FilterSheet onClear={onClear} onClose={() => setOpen(false)}>
          {children}
        </FilterSheet>
      )}
    </>
  );
}

/** Selects or deselects all rows of a list. */
export interface SelectAll {
  readonly all: boolean;
  readonly toggle: () => void;
}

/** The menu that sorts a list and selects all its rows on a phone. On wider screens, the column headers do this. */
export function SortMenu<Row>({
  columns,
  sorting,
  onSort,
  choose = null,
}: {
  readonly columns: readonly Column<Row>[];
  readonly sorting: Sorting;
  readonly onSort: (sorting: Sorting) => void;
  /** Null if rows cannot be selected. */
  readonly choose?: SelectAll | null;
}) {
  const { column: sorted, descending } = sorting;
  const Arrow = descending ? ArrowUpNarrowWide : ArrowDownNarrowWide;
  return (
    <Menu trigger={<Button aria-label={choose === null ? 'Sort' : 'Sort and select'}>Sort</Button>}>
      <MenuHeading>Sort by</MenuHeading>
      {columns
        .filter(({ sort }) => sort !== undefined)
        .map(({ id, header }) => (
          <MenuItem
            key={id}
            onSelect={() => onSort({ column: id, descending: id === sorted && !descending })}
            icon={
              <span className="flex w-4">
                {id === sorted && <Arrow aria-hidden="true" className="size-4 text-accent" />}
              </span>
            }
          >
            {header}
            {id === sorted && <span className="sr-only">{descending ? 'descending' : 'ascending'}</span>}
          </MenuItem>
        ))}
      {choose !== null && (
        <>
          <MenuLine />
          <MenuCheck checked={choose.all} onChange={choose.toggle}>
            Select all
          </MenuCheck>
        </>
      )}
    </Menu>
  );
}
