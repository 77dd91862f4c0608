import {
  createWindow,
  listAgents,
  listOperators,
  listTags,
  listWindows,
  removeWindow,
  updateWindow,
} from '@muster/protocol/http';
import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { operatorId, renderPage } from '../../../test/render.tsx';
import { WindowsPage } from './windows-page.tsx';

const now = Math.floor(Date.now() / 1000);
const openWindow = {
  id: '01KAGZ8S4F6G7H8J9K0M1N2P3Q',
  starts_at: now - 3_600,
  ends_at: now + 3_600,
  reason: 'kernel updates in Paris',
  created_by: operatorId,
  selector: 'site=paris',
};

function orchestrator() {
  const api = fakeApi();
  api.answerExamples(listOperators);
  return api;
}

test('shows placeholders while windows load', async () => {
  orchestrator().hold(listWindows);
  await renderPage(WindowsPage);
  expect(screen.getByRole('status', { name: 'Loading' })).toBeTruthy();
});

test("shows the orchestrator's error and retries on request", async () => {
  const api = orchestrator();
  api.refuse(listWindows, 'internal', 'the database does not answer');
  const { user } = await renderPage(WindowsPage);
  expect((await screen.findByRole('alert')).textContent).toContain('the database does not answer');
  api.answer(listWindows, [openWindow]);
  await user.click(screen.getByRole('button', { name: 'Try again' }));
  expect((await screen.findByRole('grid', { name: 'Maintenance windows' })).textContent).toContain(openWindow.reason);
});

test('hides the button for new windows from operators who are not admins', async () => {
  orchestrator().answer(listWindows, []);
  await renderPage(WindowsPage, { role: 'operator' });
  await screen.findByText('No maintenance windows');
  expect(screen.queryByRole('button', { name: 'New window' })).toBeNull();
});

test('removes a window after confirmation', async () => {
  const api = orchestrator();
  api.answer(listWindows, [openWindow]);
  api.answer(removeWindow, undefined);
  const { user } = await renderPage(WindowsPage, { path: '/windows' });
  const list = within(await screen.findByRole('grid', { name: 'Maintenance windows' }));
  expect(list.getByText('open')).toBeTruthy();
  await user.click(list.getByRole('button', { name: /^Actions on / }));
  await user.click(screen.getByRole('menuitem', { name: 'Remove…' }));
  await user.click(screen.getByRole('button', { name: 'Remove window' }));
  expect(api.received(removeWindow)).toMatchObject([{ params: { id: openWindow.id } }]);
});

test('creates a window for every agent', async () => {
  const api = orchestrator();
  api.answer(listWindows, []);
  api.answerExamples(createWindow);
  const { user } = await renderPage(WindowsPage);
  await user.click((await screen.findAllByRole('button', { name: 'New window' }))[0] as HTMLElement);
  await user.type(screen.getByLabelText('Reason'), 'kernel updates');
  await user.click(screen.getByRole('button', { name: 'Create window' }));
  expect(await screen.findByText('Maintenance window created')).toBeTruthy();
  const [{ body }] = api.received(createWindow) as unknown as [{ body: { starts_at: number; ends_at: number } }];
  expect(body).toMatchObject({ reason: 'kernel updates', ends_at: body.starts_at + 7_200 });
  expect(body).not.toHaveProperty('selector');
});

test('refuses a window that ends before it starts or has an empty selector', async () => {
  const api = orchestrator();
  api.answer(listWindows, []);
  api.answerExamples(listAgents, listTags);
  const { user } = await renderPage(WindowsPage);
  await user.click((await screen.findAllByRole('button', { name: 'New window' }))[0] as HTMLElement);
  const create = screen.getByRole('button', { name: 'Create window' }) as HTMLButtonElement;
  fireEvent.change(screen.getByLabelText('Ends'), { target: { value: '2020-01-01T00:00' } });
  expect(screen.getByText('Must be after the start')).toBeTruthy();
  expect(create.disabled).toBe(true);
  fireEvent.change(screen.getByLabelText('Ends'), { target: { value: '2199-01-01T00:00' } });
  expect(create.disabled).toBe(false);
  await user.click(screen.getByLabelText('For every agent'));
  expect(screen.getByText('An empty selector matches no agent.')).toBeTruthy();
  expect(create.disabled).toBe(true);
});

test("lets an admin change a window's reason, but not its start", async () => {
  const api = orchestrator();
  api.answer(listWindows, [openWindow]);
  api.answerExamples(updateWindow);
  const { user } = await renderPage(WindowsPage);
  await user.click(await screen.findByRole('button', { name: /^Actions on / }));
  await user.click(screen.getByRole('menuitem', { name: 'Edit…' }));
  expect((screen.getByLabelText('Starts') as HTMLInputElement).disabled).toBe(true);
  await user.clear(screen.getByLabelText('Reason'));
  await user.type(screen.getByLabelText('Reason'), 'kernel updates');
  await user.click(screen.getByRole('button', { name: 'Save' }));
  expect(await screen.findByText('Maintenance window changed')).toBeTruthy();
  expect(api.received(updateWindow)).toMatchObject([
    { params: { id: openWindow.id }, body: { reason: 'kernel updates' } },
  ]);
});

test('ends an open window after a confirmation', async () => {
  const api = orchestrator();
  api.answer(listWindows, [openWindow]);
  api.answerExamples(updateWindow);
  const { user } = await renderPage(WindowsPage);
  await user.click(await screen.findByRole('button', { name: /^Actions on / }));
  await user.click(screen.getByRole('menuitem', { name: 'End now…' }));
  await user.click(screen.getByRole('button', { name: 'End window' }));
  await waitFor(() => expect(api.received(updateWindow)).toHaveLength(1));
  expect(api.received(updateWindow)[0]?.body).toHaveProperty('ends_at');
});

test('keeps the displayed month in the URL', async () => {
  orchestrator().answer(listWindows, []);
  const { user, address } = await renderPage(WindowsPage, { path: '/windows', at: '/windows?month=2026-12' });
  await user.click(await screen.findByRole('button', { name: 'Next month' }));
  await waitFor(() => expect(address()).toBe('/windows?month=2027-01'));
  await user.click(screen.getByRole('button', { name: 'Today' }));
  await waitFor(() => expect(address()).toBe('/windows'));
});

const planned = { ...openWindow, id: '01KAGZ8S4F6G7H8J9K0M1N2P3R', starts_at: now + 7_200, ends_at: now + 9_000 };
const ended = { ...openWindow, id: '01KAGZ8S4F6G7H8J9K0M1N2P3S', starts_at: now - 9_000, ends_at: now - 7_200 };
const windows = [{ ...ended, reason: 'old disks' }, { ...planned, reason: 'new switches' }, openWindow];
const listed = async () =>
  within(await screen.findByRole('grid', { name: 'Maintenance windows' }))
    .getAllByRole('row')
    .slice(1)
    .map((row) => within(row).getAllByRole('gridcell')[0]?.textContent);

test('lists open windows first, then planned and past ones', async () => {
  orchestrator().answer(listWindows, windows);
  await renderPage(WindowsPage);
  expect(await listed()).toEqual(['kernel updates in Paris', 'new switches', 'old disks']);
  expect(screen.getByRole('table', { name: 'Calendar' })).toBeTruthy();
});

test('filters by status', async () => {
  orchestrator().answer(listWindows, windows);
  await renderPage(WindowsPage, { at: '/?state=planned' });
  expect(await listed()).toEqual(['new switches']);
});

test('offers only the removal of a past window', async () => {
  orchestrator().answer(listWindows, windows.slice(0, 1));
  const { user } = await renderPage(WindowsPage);
  await user.click(await screen.findByRole('button', { name: 'Actions on old disks' }));
  expect(screen.getAllByRole('menuitem').map(({ textContent }) => textContent)).toEqual(['Remove…']);
});

test('shows the whole reason, the times, and the agents of a window on request', async () => {
  const reason = `replacement of the disks of all storage servers in Paris, ${'one rack after another, '.repeat(5)}by Ada`;
  orchestrator().answer(listWindows, [{ ...openWindow, reason }]);
  const { user } = await renderPage(WindowsPage, { role: 'operator' });
  const list = within(await screen.findByRole('grid', { name: 'Maintenance windows' }));
  expect(list.queryByText(reason)).toBeNull();
  await user.click(list.getByRole('button', { name: /^replacement of the disks/ }));
  expect(list.getByText(reason)).toBeTruthy();
  expect(list.getAllByRole('term').map(({ textContent }) => textContent)).toEqual([
    'Reason',
    'Starts',
    'Ends',
    'Agents',
    'Created by',
  ]);
});
