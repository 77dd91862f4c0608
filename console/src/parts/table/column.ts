import type { ReactNode } from 'react';

export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** A fixed width such as `6rem`, or a share of the remaining width such as `2fr` or `minmax(8rem,2fr)`. */
  readonly width: string;
  /** Returns the value to sort by. If absent, the column cannot be sorted. */
  readonly sort?: (row: Row) => string | number | null;
  readonly align?: 'right';
  /** Hides the column on narrower screens: `sm` 640 px, `md` 768 px, `lg` 1024 px, `xl` 1280 px, `2xl` 1536 px. */
  readonly from?: 'sm' | 'md' | 'lg' | 'xl' | '2xl';
}

export interface Sorting {
  readonly column: string;
  readonly descending: boolean;
}
