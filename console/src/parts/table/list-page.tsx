import type { ReactNode } from 'react';
import { Page } from '../page.tsx';
import { ListTable, type ListTableProps } from './list-table.tsx';

/** A page with one list: a title, filters, and a table that takes the remaining height. */
export function ListPage<Row>({
  title,
  subtitle,
  actions,
  label = title,
  children,
  ...list
}: Omit<ListTableProps<Row>, 'fill' | 'label'> & {
  readonly title: string;
  readonly subtitle: ReactNode;
  readonly actions?: ReactNode;
  /** Accessible name of the table; the title by default. */
  readonly label?: string;
  /** Dialogs of the page. */
  readonly children?: ReactNode;
}) {
  return (
    <Page title={title} subtitle={subtitle} actions={actions} fill>
      <ListTable {...list} label={label} fill />
      {children}
    </Page>
  );
}
