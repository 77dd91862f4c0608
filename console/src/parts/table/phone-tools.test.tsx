import { screen, within } from '@testing-library/react';
import { useState } from 'react';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Column } from './column.ts';

interface Machine {
  readonly name: string;
  readonly state: string;
}
const machines: readonly Machine[] = ['b', 'a', 'c'].map((name) => ({
  name,
  state: name === 'c' ? 'offline' : 'connected',
}));
const columns: readonly Column<Machine>[] = [
  { id: 'name', header: 'Name', width: '2fr', sort: ({ name }) => name, cell: ({ name }) => name },
  { id: 'state', header: 'State', width: '6rem', cell: ({ state }) => state },
];
const filters = [
  { name: 'q', label: 'Search', placeholder: 'Search by name' },
  { name: 'state', label: 'State', any: 'Any state', options: ['connected', 'offline'] },
] as const;
const matches = ({ name, state }: Machine, values: Readonly<Record<string, string>>) =>
  name.includes(values.q ?? '') && (values.state === '' || values.state === state);
const query = { isPending: false, isError: false, error: null, refetch: () => {} };

/** Renders a list on a phone. Loads the modules again, because the other tests simulate a wide screen. */
async function render(at = '/') {
  vi.resetModules();
  vi.doMock('./screen-widths.ts', () => ({ useHiddenWidths: () => 'sm md lg xl 2xl' }));
  onTestFinished(() => {
    vi.doUnmock('./screen-widths.ts');
    vi.resetModules();
  });
  const { fakeApi } = await import('../../../test/fake-api.ts');
  const { renderPage } = await import('../../../test/render.tsx');
  const { ListTable } = await import('./list-table.tsx');
  fakeApi();
  function List() {
    const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
    return (
      <>
        <p>{[...chosen].toSorted().join(' ')} selected</p>
        <ListTable
          label="Machines"
          query={query}
          rows={machines}
          columns={columns}
          filters={filters}
          matches={matches}
          sortedBy="name"
          rowKey={({ name }) => name}
          chosen={chosen}
          onChoose={setChosen}
          noMatch="No matching machines"
          empty="No machines"
        />
      </>
    );
  }
  return await renderPage(List, { at });
}

const names = () =>
  screen.getAllByRole('row').flatMap((row) => within(row).queryAllByRole('gridcell')[1]?.textContent ?? []);

test('opens all filters except the search with one button, and counts the filters that are set', async () => {
  const { user } = await render();
  expect(screen.getByRole('searchbox', { name: 'Search' })).toBeTruthy();
  expect(screen.queryByRole('combobox', { name: 'State' })).toBeNull();
  await user.click(screen.getByRole('button', { name: 'Filters' }));
  const sheet = within(await screen.findByRole('dialog', { name: 'Filters' }));
  expect((sheet.getByRole('button', { name: 'Clear filters' }) as HTMLButtonElement).disabled).toBe(true);
  await user.selectOptions(sheet.getByRole('combobox', { name: 'State' }), 'offline');
  await user.click(sheet.getByRole('button', { name: 'Show list' }));
  expect(names()).toEqual(['c']);
  expect(screen.getByRole('button', { name: 'Filters (1 set)' })).toBeTruthy();
});

test('clears the filters in the sheet', async () => {
  const { user } = await render('/?state=offline');
  await user.click(await screen.findByRole('button', { name: 'Filters (1 set)' }));
  await user.click(within(await screen.findByRole('dialog')).getByRole('button', { name: 'Clear filters' }));
  await user.click(screen.getByRole('button', { name: 'Show list' }));
  expect(names()).toEqual(['a', 'b', 'c']);
});

test('sorts in the other direction when a column is chosen again', async () => {
  const { user } = await render();
  expect(names()).toEqual(['a', 'b', 'c']);
  await user.click(screen.getByRole('button', { name: 'Sort and select' }));
  // A column without a sort order is not offered.
  expect(screen.getAllByRole('menuitem')).toHaveLength(1);
  await user.click(screen.getByRole('menuitem', { name: 'Name ascending' }));
  expect(names()).toEqual(['c', 'b', 'a']);
});

test('selects all shown rows', async () => {
  const { user } = await render('/?state=connected');
  await user.click(await screen.findByRole('button', { name: 'Sort and select' }));
  await user.click(screen.getByRole('menuitemcheckbox', { name: 'Select all' }));
  expect(screen.getByText('a b selected')).toBeTruthy();
});
