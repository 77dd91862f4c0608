import { checkDrift, type DriftRecord } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { CheckNow, foundText } from './check-now.tsx';

const record = checkDrift.example.answer as never as DriftRecord;
const { node_id } = record;

test('checks an agent, and reports what the check found', async () => {
  const api = fakeApi();
  api.answer(checkDrift, { ...record, status: 'drifted', accepted: null });
  const { user } = await renderPart(<CheckNow node_id={node_id} name="web-1" />);
  await user.click(screen.getByRole('button', { name: 'Check now' }));
  expect(await screen.findByText(/^web-1 has drifted: 1 resource$/)).toBeTruthy();
  expect(api.received(checkDrift)).toMatchObject([{ params: { node_id } }]);
});

test('shows that a check is in progress', async () => {
  fakeApi().hold(checkDrift);
  const { user } = await renderPart(<CheckNow node_id={node_id} name="web-1" />);
  await user.click(screen.getByRole('button', { name: 'Check now' }));
  expect((await screen.findByRole('button', { name: 'Checking…' })).getAttribute('aria-busy')).toBe('true');
});

test.each([
  [{ status: 'in_sync' }, 'web-1 has not drifted'],
  [{ status: 'drifted', accepted: { by: 'o', at: 1, reason: 'known' } }, 'web-1 has accepted drift: 1 resource'],
  [{ status: 'failed', error: 'the disk is full' }, 'The check of web-1 failed: the disk is full'],
  [{ status: 'failed', error: null }, 'The check of web-1 failed'],
  [{ status: 'cancelled' }, 'The check of web-1 was canceled'],
] as const)('describes a check with %j', (part, text) => {
  expect(foundText('web-1', { ...record, ...part } as DriftRecord)).toBe(text);
});
