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
  /**
   * Place on a phone, where the first column is the first line of a row, and the others share the second line.
   * `labeled`: on the second line, after its header; `top`: at the end of the first line; `line-end`: at the end of the
   * second line; `block`: on its own line below these; `end`: at the end of the row, for buttons; `hidden`: nowhere. By
   * default, columns with `from` are hidden, and the others are on the second line.
   */
  readonly phone?: 'line' | 'labeled' | 'top' | 'line-end' | 'block' | 'end' | 'hidden';
}

export interface Sorting {
  readonly column: string;
  readonly descending: boolean;
}
