import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { Profiler, useState } from 'react';
import { expect, test, vi } from 'vitest';
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
const machines = (count: number): Machine[] =>
  Array.from({ length: count }, (_, index) => ({ name: `web-${index}`, cpus: 4 }));

function Machines({
  rows,
  onOpen,
  onNearEnd,
}: {
  rows: Machine[];
  onOpen?: (row: Machine) => void;
  onNearEnd?: () => void;
}) {
  const [sorting, setSorting] = useState<Sorting>({ column: 'name', descending: false });
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  return (
    <DataTable
      label="Machines"
      rows={rows}
      columns={columns}
      rowKey={({ name }) => name}
      sorting={sorting}
      onSort={setSorting}
      chosen={chosen}
      onChoose={setChosen}
      empty={<p>No machine</p>}
      {...(onOpen && { onOpen })}
      {...(onNearEnd && { onNearEnd })}
    />
  );
}

const rows = () => screen.getAllByRole('row').slice(1);
const names = (some: HTMLElement[]) => some.map((row) => within(row).getAllByRole('gridcell')[1]?.textContent);
const chosenNames = () => names(rows().filter((row) => row.getAttribute('aria-selected') === 'true'));

test('sorts by a clicked header, with missing values last in both directions', async () => {
  fakeApi();
  const { user } = await renderPart(
    <Machines
      rows={[
        { name: 'web-2', cpus: 8 },
        { name: 'web-10', cpus: null },
        { name: 'web-1', cpus: 16 },
      ]}
    />,
  );
  expect(names(rows())).toEqual(['web-1', 'web-2', 'web-10']);
  await user.click(screen.getByRole('button', { name: 'CPUs' }));
  expect(names(rows())).toEqual(['web-2', 'web-1', 'web-10']);
  await user.click(screen.getByRole('button', { name: 'CPUs' }));
  expect(names(rows())).toEqual(['web-1', 'web-2', 'web-10']);
  expect(screen.getByRole('columnheader', { name: 'CPUs' }).getAttribute('aria-sort')).toBe('descending');
});

test('shows the placeholder if there are no rows', async () => {
  fakeApi();
  await renderPart(<Machines rows={[]} />);
  expect(screen.getByText('No machine')).toBeTruthy();
  expect(screen.getByRole('grid').getAttribute('aria-rowcount')).toBe('1');
});

test('renders only visible rows, and requests no more rows until the last row is near', async () => {
  fakeApi();
  const onNearEnd = vi.fn();
  await renderPart(<Machines rows={machines(10_000)} onNearEnd={onNearEnd} />);
  expect(rows().length).toBeLessThan(60);
  expect(screen.getByRole('grid').getAttribute('aria-rowcount')).toBe('10001');
  expect(onNearEnd).not.toHaveBeenCalled();
});

test('shows the earlier rows until many new rows are sorted', async () => {
  fakeApi();
  function Growing() {
    const [all, setAll] = useState(machines(3));
    return (
      <>
        <button type="button" onClick={() => setAll(machines(5_000).toReversed())}>
          Load
        </button>
        <Machines rows={all} />
      </>
    );
  }
  const { user } = await renderPart(<Growing />);
  const grid = screen.getByRole('grid');
  const shown: (string | null)[] = [];
  const watch = new MutationObserver(() => shown.push(grid.getAttribute('aria-rowcount')));
  watch.observe(grid, { attributes: true });
  await user.click(screen.getByRole('button', { name: 'Load' }));
  await waitFor(() => expect(grid.getAttribute('aria-rowcount')).toBe('5001'));
  watch.disconnect();
  expect(grid.getAttribute('aria-busy')).toBeNull();
  expect(shown[0]).toBe('4');
  expect(names(rows()).slice(0, 3)).toEqual(['web-0', 'web-1', 'web-2']);
});

test('does not announce a row count or a sort order while more rows are loading', async () => {
  fakeApi();
  await renderPart(
    <DataTable
      label="Machines"
      rows={machines(3).toReversed()}
      columns={columns}
      rowKey={({ name }) => name}
      sorting={{ column: 'name', descending: false }}
      isPartial
      empty={null}
    />,
  );
  expect(screen.getByRole('grid').getAttribute('aria-rowcount')).toBe('-1');
  expect(rows().map((row) => within(row).getAllByRole('gridcell')[0]?.textContent)).toEqual([
    'web-2',
    'web-1',
    'web-0',
  ]);
});

test('renders the visible rows before the rows below them', async () => {
  fakeApi();
  const rendered: number[] = [];
  await renderPart(
    <Profiler id="table" onRender={() => rendered.push(document.querySelectorAll('[data-index]').length)}>
      <Machines rows={machines(100)} />
    </Profiler>,
  );
  // The screen is 800 px high, and each row 36 px.
  expect(rendered.filter((count) => count > 0)[0]).toBe(23);
  expect(rows()).toHaveLength(33);
});

test('requests more rows if all rows are visible', async () => {
  fakeApi();
  const onNearEnd = vi.fn();
  await renderPart(<Machines rows={machines(5)} onNearEnd={onNearEnd} />);
  expect(onNearEnd).toHaveBeenCalled();
});

test('moves the focus on arrow keys, opens a row on Enter, and is one tab stop', async () => {
  fakeApi();
  const onOpen = vi.fn();
  const { user } = await renderPart(<Machines rows={machines(5)} onOpen={onOpen} />);
  expect(rows().map(({ tabIndex }) => tabIndex)).toEqual([0, -1, -1, -1, -1]);
  rows()[0]?.focus();
  await user.keyboard('{ArrowDown}');
  await vi.waitFor(() => expect(document.activeElement).toBe(rows()[1]));
  await user.keyboard('{Enter}');
  expect(onOpen).toHaveBeenCalledWith({ name: 'web-1', cpus: 4 });
  expect(rows().map(({ tabIndex }) => tabIndex)).toEqual([-1, 0, -1, -1, -1]);
});

test('keeps the focus in the table if the focused row is filtered out', async () => {
  fakeApi();
  const Filtered = () => {
    const [all] = useState(() => machines(5));
    const [filter, setFilter] = useState('web');
    return (
      <>
        <input aria-label="Filter" onChange={({ target }) => setFilter(target.value)} />
        <Machines rows={all.filter(({ name }) => name.includes(filter))} />
      </>
    );
  };
  const { user } = await renderPart(<Filtered />);
  const filter = (text: string) => fireEvent.change(screen.getByLabelText('Filter'), { target: { value: text } });
  rows()[3]?.focus();
  filter('-1');
  expect(names(rows())).toEqual(['web-1']);
  expect(document.activeElement).toBe(rows()[0]);
  filter('web');
  await user.keyboard('{ArrowDown}');
  await vi.waitFor(() => expect(document.activeElement).toBe(rows()[2]));
  rows()[2]?.blur();
  filter('-0');
  expect(document.activeElement).toBe(document.body);
});

test('opens a row on a click, but not on a click on its checkbox', async () => {
  fakeApi();
  const onOpen = vi.fn();
  const { user } = await renderPart(<Machines rows={machines(3)} onOpen={onOpen} />);
  await user.click(screen.getByRole('checkbox', { name: 'Select web-1' }));
  expect(onOpen).not.toHaveBeenCalled();
  await user.click(within(rows()[2] as HTMLElement).getByText('web-2'));
  expect(onOpen).toHaveBeenCalledWith({ name: 'web-2', cpus: 4 });
});

test('selects rows with Space, ranges with Shift, all with Ctrl+A, and none with Escape', async () => {
  fakeApi();
  const { user } = await renderPart(<Machines rows={machines(5)} />);
  rows()[1]?.focus();
  await user.keyboard(' ');
  expect(chosenNames()).toEqual(['web-1']);
  await user.keyboard('{Shift>}');
  await user.click(screen.getByRole('checkbox', { name: 'Select web-3' }));
  await user.keyboard('{/Shift}');
  expect(chosenNames()).toEqual(['web-1', 'web-2', 'web-3']);
  rows()[0]?.focus();
  await user.keyboard('{Control>}a{/Control}');
  expect(chosenNames()).toHaveLength(5);
  expect((screen.getByRole('checkbox', { name: 'Select all' }) as HTMLInputElement).checked).toBe(true);
  await user.keyboard('{Escape}');
  expect(chosenNames()).toEqual([]);
});
