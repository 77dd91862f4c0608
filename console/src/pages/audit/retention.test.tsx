import { getAuditRetention, getSettings, pruneAudit } from '@muster/protocol/http';
import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { Retention } from './retention.tsx';

async function open(deleted: number) {
  const api = fakeApi();
  api.answerExamples(getAuditRetention, getSettings);
  api.answer(pruneAudit, { ...pruneAudit.example.answer, deleted } as never);
  const onClose = vi.fn();
  const { user } = await renderPart(<Retention onClose={onClose} />);
  fireEvent.change(await screen.findByLabelText('Remove events before'), { target: { value: '2026-01-01T00:00' } });
  await user.click(screen.getByRole('button', { name: 'Count and remove…' }));
  return { api, user, onClose };
}

test('reports that no events are old enough, and does not offer to remove any', async () => {
  await open(0);
  expect(await screen.findByText('No events are older than this time.')).toBeTruthy();
  expect(screen.queryByRole('alertdialog')).toBeNull();
});

test('removes the counted events after a confirmation', async () => {
  const { api, user } = await open(1);
  const dialog = within(await screen.findByRole('alertdialog', { name: 'Remove 1 event?' }));
  await user.click(dialog.getByRole('button', { name: 'Remove events' }));
  await waitFor(() => expect(api.received(pruneAudit)).toHaveLength(2));
});

test('closes without removing events if the operator cancels', async () => {
  const { user, onClose } = await open(0);
  await user.click(screen.getByRole('button', { name: 'Cancel' }));
  expect(onClose).toHaveBeenCalled();
});
