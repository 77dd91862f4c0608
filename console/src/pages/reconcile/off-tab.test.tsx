import { checkDrift, listReconcile, type OffAgent } from '@muster/protocol/http';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { OutOfSyncPage } from './out-of-sync-page.tsx';

const example = listReconcile.example.answer[0] as never as OffAgent;
const named = (name: string, part: Partial<OffAgent> = {}): OffAgent => ({
  ...example,
  ...{ node_id: name.padEnd(32, '0'), name },
  ...part,
});

test('checks the listed agents that are connected, and skips the others', async () => {
  const api = fakeApi();
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
  const api = fakeApi();
  const clean = { reasons: [], drift: [], failed_operation: null, unapplied: 0, unfinished: [] };
  api.answer(listReconcile, [named('web-1', clean)]);
  await renderPage(OutOfSyncPage, { at: '/?reason=outdated' });
  const list = await screen.findByRole('list', { name: 'Out of sync' });
  expect(within(list).getByText('outdated')).toBeTruthy();
  expect(screen.getByText('motd: revision 3 applied, newest 4')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Fix… web-1' })).toBeTruthy();
  expect(api.received(listReconcile)[0]?.query).toEqual({ limit: '500', include_outdated: 'true' });
});
