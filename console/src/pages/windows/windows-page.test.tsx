import { listOperators, listWindows, removeWindow } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
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

test('shows the error of the orchestrator and loads again on request', async () => {
  const api = orchestrator();
  api.refuse(listWindows, 'internal', 'the database does not answer');
  const { user } = await renderPage(WindowsPage);
  expect((await screen.findByRole('alert')).textContent).toContain('the database does not answer');
  api.answer(listWindows, [openWindow]);
  await user.click(screen.getByRole('button', { name: 'Try again' }));
  expect(await screen.findByRole('list', { name: 'Maintenance windows' })).toBeTruthy();
});

test('offers an admin, and no one else, to plan the first window', async () => {
  orchestrator().answer(listWindows, []);
  await renderPage(WindowsPage, { role: 'operator' });
  await screen.findByText('No maintenance windows');
  expect(screen.queryByRole('button', { name: 'New window' })).toBeNull();
});

test('removes a window after a confirmation', async () => {
  const api = orchestrator();
  api.answer(listWindows, [openWindow]);
  api.answer(removeWindow, undefined);
  const { user } = await renderPage(WindowsPage, { path: '/windows' });
  const entry = within(await screen.findByRole('list', { name: 'Maintenance windows' })).getByRole('listitem');
  expect(entry.textContent).toContain('open');
  await user.click(within(entry).getByRole('button', { name: 'Remove' }));
  await user.click(screen.getByRole('button', { name: 'Remove window' }));
  expect(api.received(removeWindow)).toMatchObject([{ params: { id: openWindow.id } }]);
});
