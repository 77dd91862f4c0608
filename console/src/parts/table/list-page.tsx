import type { ReactNode } from 'react';
import { Page } from '../page.tsx';
import { ListTable, type ListTableProps } from './list-table.tsx';

/** A page with one list: a title, filters, and a table that takes the remaining height. */
export function ListPage<Row>({
  title,
  description,
  actions,
  label = title,
  children,
  ...list
}: Omit<ListTableProps<Row>, 'fill' | 'label'> & {
  readonly title: string;
  readonly description: ReactNode;
  readonly actions?: ReactNode;
  /** The table's accessible name; the title by default. */
  readonly label?: string;
  /** The page's dialogs. */
  readonly children?: ReactNode;
}) {
  return (
    <Page title={title} description={description} actions={actions} fill>
      <ListTable {...list} label={label} fill />
      {children}
    </Page>
  );
}
