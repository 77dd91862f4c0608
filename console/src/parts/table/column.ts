import type { ReactNode } from 'react';

/** A column of a DataTable. */
export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** A fixed width such as `6rem`, or a share of the rest: `2fr`, `minmax(8rem,2fr)`. */
  readonly width: string;
  /** The value to sort by. A column without it cannot be sorted. */
  readonly sort?: (row: Row) => string | number | null;
  readonly align?: 'right';
  /** Hides the column below this width: `sm` 640 px, `md` 768 px, `lg` 1024 px, `xl` 1280 px, `2xl` 1536 px. */
  readonly from?: 'sm' | 'md' | 'lg' | 'xl' | '2xl';
}

export interface Sorting {
  readonly column: string;
  readonly descending: boolean;
}
