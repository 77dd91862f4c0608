import { screen, within } from '@testing-library/react';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Column } from './data-table.tsx';

interface Machine {
  readonly name: string;
}
const columns: readonly Column<Machine>[] = [
  { id: 'name', header: 'Name', width: '2fr', sort: ({ name }) => name, cell: ({ name }) => name },
  { id: 'state', header: 'State', width: '6rem', cell: () => 'connected' },
  { id: 'system', header: 'System', width: '6rem', from: 'lg', cell: () => 'debian' },
  { id: 'uses', header: 'Uses', width: '6rem', from: 'lg', phone: 'labeled', cell: () => '3' },
  { id: 'age', header: 'Age', width: '6rem', phone: 'hidden', cell: () => '5m' },
  { id: 'seen', header: 'Seen', width: '6rem', phone: 'top', cell: () => 'now' },
  { id: 'tags', header: 'Tags', width: '6rem', phone: 'block', cell: () => 'role=web' },
  { id: 'fix', header: 'Apply', width: '6rem', phone: 'line-end', cell: () => <button type="button">Apply…</button> },
  { id: 'actions', header: 'Actions', width: '6rem', phone: 'end', cell: () => <button type="button">Edit</button> },
];

/** Loads the modules again, because test files share them, and the other tests simulate a wide screen. */
const render = async (chosen?: ReadonlySet<string>) => {
  vi.resetModules();
  vi.doMock('./screen-widths.ts', () => ({ useHiddenWidths: () => 'sm md lg xl 2xl' }));
  onTestFinished(() => {
    vi.doUnmock('./screen-widths.ts');
    vi.resetModules();
  });
  const { fakeApi } = await import('../../../test/fake-api.ts');
  const { renderPart } = await import('../../../test/render.tsx');
  const { DataTable } = await import('./data-table.tsx');
  fakeApi();
  await renderPart(
    <DataTable
      label="Machines"
      rows={[{ name: 'web-1' }]}
      columns={columns}
      rowKey={({ name }) => name}
      sorting={{ column: 'name', descending: false }}
      onSort={() => {}}
      empty={null}
      {...(chosen === undefined ? {} : { chosen, onChoose: () => {} })}
    />,
  );
};

test('shows the cells of a row at the places that their columns name', async () => {
  await render();
  const [, row] = screen.getAllByRole('row');
  const cells = within(row as HTMLElement).getAllByRole('gridcell');
  expect(cells.map(({ textContent }) => textContent)).toEqual([
    'web-1',
    'now',
    'connected',
    'Uses3',
    'Apply…',
    'role=web',
    'Edit',
  ]);
  expect(cells[0]?.className).toContain('wraps-names');
});

test('keeps the headers of shown columns only for screen readers', async () => {
  await render(new Set());
  const headers = screen.getAllByRole('columnheader');
  expect(headers.map(({ textContent }) => textContent)).toEqual([
    'Selected',
    'Name',
    'State',
    'Uses',
    'Seen',
    'Tags',
    'Apply',
    'Actions',
  ]);
  expect(screen.getByRole('columnheader', { name: 'Name' }).getAttribute('aria-sort')).toBe('ascending');
  expect(headers[0]?.closest('.sr-only')).toBeTruthy();
  expect(screen.queryByRole('checkbox', { name: 'Select all' })).toBeNull();
});
