import { acceptDrift, type DriftRecord, getDrift, listAgents, listDrift, listOperators } from '@muster/protocol/http';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { operatorId, renderPage } from '../../../test/render.tsx';
import { DriftRecordPage } from './drift-record-page.tsx';

const record = getDrift.example.answer as never as DriftRecord;

async function open(part: Partial<DriftRecord> = {}, others: readonly Partial<DriftRecord>[] = []) {
  const api = fakeApi();
  api.answerExamples(listAgents, listOperators);
  const shown = { ...record, ...part };
  api.answer(getDrift, shown as never);
  api.answer(listDrift, [...others.map((other) => ({ ...record, ...other })), shown] as never);
  return { api, ...(await renderPage(DriftRecordPage, { path: '/drift/$record', at: `/drift/${record.drift_id}` })) };
}
const newer = { drift_id: '01KAGZ9R3E5F6G7H8J9K0M1N2P', checked_at: record.checked_at + 60 };

test('shows a drift record with the actions that repair or accept it', async () => {
  await open();
  expect(await screen.findByText('Drifted for')).toBeTruthy();
  for (const name of ['Check now', 'Accept…', 'Apply…']) expect(screen.getByRole('button', { name })).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Withdraw acceptance' })).toBeNull();
  expect(screen.queryByText('A newer check of this agent exists')).toBeNull();
});

test('links to a newer check', async () => {
  const { user, address } = await open({}, [newer]);
  await user.click(await screen.findByRole('link', { name: 'Show the latest' }));
  expect(address()).toBe(`/drift/${newer.drift_id}`);
});

test('ignores checks of audit assignments when it looks for a newer check', async () => {
  await open({}, [{ ...newer, trigger: 'audit' }]);
  await screen.findByText('Drifted for');
  expect(screen.queryByText('A newer check of this agent exists')).toBeNull();
});

test('shows a minimum duration of drift if its start is unknown', async () => {
  const { api } = await open();
  api.answer(listDrift, []);
  expect(await screen.findByText('at least', { exact: false })).toBeTruthy();
});

test('accepts drift with a reason', async () => {
  const { api, user } = await open();
  api.answerExamples(acceptDrift);
  await user.click(await screen.findByRole('button', { name: 'Accept…' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Accept the drift on web-1' }));
  expect(dialog.getByText('/etc/motd')).toBeTruthy();
  expect((dialog.getByRole('button', { name: 'Accept' }) as HTMLButtonElement).disabled).toBe(true);
  await user.type(dialog.getByLabelText('Reason'), ' wanted{Enter}');
  await user.click(dialog.getByRole('button', { name: 'Accept' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(api.received(acceptDrift)).toMatchObject([
    { params: { drift_id: record.drift_id }, body: { reason: 'wanted' } },
  ]);
});

test('shows who accepted the drift and why', async () => {
  await open({ accepted: { by: operatorId, at: record.checked_at, reason: 'wanted until Monday' } as never });
  expect(await screen.findByText('wanted until Monday')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Withdraw acceptance' })).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Accept…' })).toBeNull();
});

test('shows why the check failed', async () => {
  await open({ status: 'failed', error: 'the agent is offline', resources: [] });
  expect(await screen.findByText('The check failed')).toBeTruthy();
  expect(screen.getByText('the agent is offline')).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Apply…' })).toBeNull();
});

test('offers no repair for drift from an audit assignment', async () => {
  await open({ trigger: 'audit' });
  await screen.findByText('Drifted for');
  expect(screen.queryByRole('button', { name: 'Apply…' })).toBeNull();
});
