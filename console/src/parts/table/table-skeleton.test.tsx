import { render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { Column } from './column.ts';
import { TableSkeleton } from './table-skeleton.tsx';

const columns: readonly Column<string>[] = ['Name', 'Hostname', 'Status'].map((header) => ({
  ...{ id: header.toLowerCase(), header, width: '1fr' },
  cell: (row) => row,
}));

test('shows the columns of the table that is loading, except those that the operator hides', () => {
  render(<TableSkeleton columns={columns} hidden={['hostname']} rows={3} />);
  const [header, ...rows] = screen.getByRole('status', { name: 'Loading' }).children;
  expect([...(header?.children ?? [])].map(({ textContent }) => textContent)).toEqual(['Name', 'Status']);
  expect(rows.map(({ children }) => children.length)).toEqual([2, 2, 2]);
});
