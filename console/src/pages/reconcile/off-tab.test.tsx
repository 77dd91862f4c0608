import { checkDrift, listAgents, listReconcile, matchSelector, type OffAgent } from '@muster/protocol/http';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { OutOfSyncPage } from './out-of-sync-page.tsx';

/** @param neverApplied number of agents without a successful apply */
function orchestrator(neverApplied = 0) {
  const api = fakeApi();
  api.answer(matchSelector, { matches: Array.from({ length: neverApplied }, (_, at) => `${at}`.padStart(32, '0')) });
  return api;
}

const example = listReconcile.example.answer[0] as never as OffAgent;
const named = (name: string, part: Partial<OffAgent> = {}): OffAgent => ({
  ...example,
  ...{ node_id: name.padEnd(32, '0'), name },
  ...part,
});

test('checks the listed agents that are connected, and skips the others', async () => {
  const api = orchestrator();
  api.answer(listReconcile, [named('web-1'), named('web-2', { connected: false })]);
  api.answerExamples(checkDrift);
  const { user } = await renderPage(OutOfSyncPage);
  await user.click(await screen.findByRole('button', { name: 'Check now…' }));
  const dialog = await screen.findByRole('dialog', { name: 'Check 1 agent for drift' });
  expect(dialog.textContent).toContain('Skips 1 agent that is offline.');
  await user.click(within(dialog).getByRole('button', { name: 'Check 1 agent' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBe(null));
  expect(api.received(checkDrift).map(({ params }) => params.node_id)).toEqual(['web-1'.padEnd(32, '0')]);
});

test('lists agents that are only outdated, with the revisions of their modules', async () => {
  const api = orchestrator();
  const clean = { reasons: [], drift: [], failed_operation: null, unapplied: 0, unfinished: [] };
  api.answer(listReconcile, [named('web-1', clean)]);
  await renderPage(OutOfSyncPage, { at: '/?tab=outdated' });
  const list = await screen.findByRole('grid', { name: 'Outdated' });
  expect(within(list).getByText('outdated')).toBeTruthy();
  expect(screen.getByText('motd: revision 3 applied, newest 4')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Apply… web-1' })).toBeTruthy();
  expect(api.received(listReconcile)[0]?.query).toEqual({ limit: '500', include_outdated: 'true' });
});

test('lists only agents whose state is outdated, as the overview counts them', async () => {
  const api = orchestrator();
  const accepted = { reasons: [], failed_operation: null, unapplied: 0, unfinished: [] };
  const drift = example.drift.slice(1);
  api.answer(listReconcile, [named('web-1'), named('web-2', { ...accepted, drift })]);
  await renderPage(OutOfSyncPage, { at: '/?tab=outdated' });
  expect(await screen.findByRole('button', { name: 'Apply… web-2' })).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Apply… web-1' })).toBeNull();
});

test('counts each agent in one of the tabs, and opens the outdated ones by an old link', async () => {
  const api = orchestrator();
  const clean = { reasons: [], drift: [], failed_operation: null, unapplied: 0, unfinished: [] };
  api.answer(listReconcile, [named('web-1'), named('web-2', clean), named('web-3', clean)]);
  await renderPage(OutOfSyncPage, { at: '/?reason=outdated' });
  const tab = await screen.findByRole('tab', { name: 'Outdated 2' });
  expect(tab.getAttribute('aria-selected')).toBe('true');
  expect(screen.getByRole('tab', { name: 'Out of sync 1' })).toBeTruthy();
  expect(rowNames()).toEqual(['web-2', 'web-3']);
});

test('does not call everything in sync while an agent is outdated', async () => {
  const api = orchestrator();
  api.answer(listReconcile, [named('web-1', { reasons: [], drift: [], failed_operation: null, unapplied: 0 })]);
  await renderPage(OutOfSyncPage);
  expect(await screen.findByText('Nothing is out of sync')).toBeTruthy();
});

test('offers to accept drift and to check in the menu of a row', async () => {
  const api = orchestrator();
  api.answer(listReconcile, [named('web-1')]);
  const { user } = await renderPage(OutOfSyncPage);
  await user.click(await screen.findByRole('button', { name: 'Actions on web-1' }));
  expect(screen.getAllByRole('menuitem').map(({ textContent }) => textContent)).toEqual(['Accept…', 'Check now…']);
});

const rowNames = () =>
  screen
    .getAllByRole('row')
    .slice(1)
    .map((row) => row.querySelector('[aria-expanded]')?.getAttribute('aria-label'));

test('sorts by urgency, and by a clicked header', async () => {
  const api = orchestrator();
  api.answer(listReconcile, [named('web-2'), named('web-1', { reasons: ['drifted'] })]);
  const { user } = await renderPage(OutOfSyncPage);
  const list = within(await screen.findByRole('grid', { name: 'Out of sync' }));
  expect(rowNames()).toEqual(['web-2', 'web-1']);
  expect(list.getByRole('columnheader', { name: 'Reason' }).getAttribute('aria-sort')).toBe('ascending');
  await user.click(list.getByRole('button', { name: 'Agent' }));
  expect(rowNames()).toEqual(['web-1', 'web-2']);
});

test('opens a row, and keeps it open when its details are clicked', async () => {
  const api = orchestrator();
  api.answerExamples(listAgents);
  const outdatedOnly = { reasons: [], drift: [], failed_operation: null, unapplied: 0, unfinished: [] };
  api.answer(listReconcile, [named('web-1', { ...outdatedOnly, connected: false })]);
  const { user } = await renderPage(OutOfSyncPage, { at: '/?tab=outdated' });
  const toggle = await screen.findByRole('button', { name: 'web-1' });
  await user.click(toggle);
  expect(toggle.getAttribute('aria-expanded')).toBe('true');
  await user.click(screen.getByText('1 module has a newer revision'));
  expect(toggle.getAttribute('aria-expanded')).toBe('true');
  await user.click(toggle);
  expect(screen.queryByText('1 module has a newer revision')).toBeNull();
});

test('links the name of an agent to its page, and opens the row with its chevron', async () => {
  const api = orchestrator();
  api.answer(listReconcile, [named('web-1')]);
  const { user, address } = await renderPage(OutOfSyncPage);
  await user.click(await screen.findByRole('link', { name: 'web-1' }));
  expect(address()).toBe(`/agents/${'web-1'.padEnd(32, '0')}`);
});

test('selects all agents of a group, and offers to apply to them', async () => {
  const api = orchestrator();
  const same = Array.from({ length: 26 }, (_, at) => named(`web-${at}`));
  api.answer(listReconcile, [...same, named('db-1', { reasons: ['drifted'] })]);
  const { user } = await renderPage(OutOfSyncPage);
  await user.click(await screen.findByRole('checkbox', { name: 'Select 26 agents' }));
  expect(screen.getByText('26 selected')).toBeTruthy();
  await user.click(screen.getByRole('checkbox', { name: 'Select all' }));
  expect(screen.getByText('27 selected')).toBeTruthy();
});

test('states that agents without an apply are not in the list, and links to them', async () => {
  orchestrator(2).answer(listReconcile, []);
  const { user, address } = await renderPage(OutOfSyncPage);
  expect(await screen.findByText('Nothing is out of sync')).toBeTruthy();
  await user.click(await screen.findByRole('link', { name: '2 agents were never applied' }));
  expect(address()).toBe('/agents?status=never_applied');
});

test('does not count an agent whose first apply failed, because it is in the list', async () => {
  orchestrator(2).answer(listReconcile, [named('0', { node_id: '0'.repeat(32) })]);
  await renderPage(OutOfSyncPage);
  expect(await screen.findByRole('link', { name: '1 agent was never applied' })).toBeTruthy();
});

test('states that all agents are in sync only if each was applied', async () => {
  orchestrator().answer(listReconcile, []);
  await renderPage(OutOfSyncPage);
  expect(await screen.findByText('Everything is in sync')).toBeTruthy();
  expect(screen.queryByText(/never applied/)).toBeNull();
});
