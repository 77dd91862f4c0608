import { screen } from '@testing-library/react';
import { useState } from 'react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { type Column, DataTable, type Sorting } from './data-table.tsx';

interface Machine {
  readonly name: string;
  readonly cpus: number | null;
}
const columns: readonly Column<Machine>[] = [
  { id: 'name', header: 'Name', width: '2fr', cell: ({ name }) => name, sort: ({ name }) => name },
  { id: 'cpus', header: 'CPUs', width: '6rem', cell: ({ cpus }) => cpus ?? '–', sort: ({ cpus }) => cpus },
];

function Machines({ rows, onOpen }: { readonly rows: readonly Machine[]; readonly onOpen?: (row: Machine) => void }) {
  const [sorting, setSorting] = useState<Sorting>({ column: 'name', descending: false });
  return (
    <DataTable
      label="Machines"
      rows={rows}
      columns={columns}
      rowKey={({ name }) => name}
      sorting={sorting}
      onSort={setSorting}
      empty={<p>No machine</p>}
      {...(onOpen && { onOpen })}
    />
  );
}

const shownNames = () =>
  screen
    .getAllByRole('row')
    .slice(1)
    .map((row) => row.firstElementChild?.textContent);

test('sorts by a header, with missing values last in both directions', async () => {
  fakeApi();
  const rows = [
    { name: 'web-2', cpus: 8 },
    { name: 'web-10', cpus: null },
    { name: 'web-1', cpus: 16 },
  ];
  const { user } = await renderPart(<Machines rows={rows} />);
  expect(shownNames()).toEqual(['web-1', 'web-2', 'web-10']);
  await user.click(screen.getByRole('button', { name: 'CPUs' }));
  expect(shownNames()).toEqual(['web-2', 'web-1', 'web-10']);
  await user.click(screen.getByRole('button', { name: 'CPUs' }));
  expect(shownNames()).toEqual(['web-1', 'web-2', 'web-10']);
  expect(screen.getByRole('columnheader', { name: 'CPUs' }).getAttribute('aria-sort')).toBe('descending');
});
