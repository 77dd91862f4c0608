import { createSecret, listAgents, listSecrets, listTags, type Secret, updateSecret } from '@muster/protocol/http';
import { screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { SecretDialog } from './secret-dialog.tsx';

const stored: Secret = listSecrets.example.answer[0] as never;

async function open(secret: Secret | null) {
  const api = fakeApi();
  api.answerExamples(listAgents, listTags, createSecret, updateSecret);
  const onClose = vi.fn();
  return { api, onClose, ...(await renderPart(<SecretDialog secret={secret} onClose={onClose} />)) };
}
const button = (name: string) => screen.getByRole('button', { name }) as HTMLButtonElement;

test('creates a secret for any approved agent, without an expiry', async () => {
  const { api, user, onClose } = await open(null);
  await user.type(screen.getByLabelText('Name'), 'db_password');
  expect(button('Save secret').disabled).toBe(true);
  await user.type(screen.getByLabelText('Value'), 'hunter2');
  await user.click(button('Save secret'));
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(api.received(createSecret)).toMatchObject([
    { body: { name: 'db_password', value: 'hunter2', expires_at: null, restriction: {} } },
  ]);
});

test('refuses an invalid name', async () => {
  const { user } = await open(null);
  await user.type(screen.getByLabelText('Name'), '1st');
  await user.type(screen.getByLabelText('Value'), 'hunter2');
  expect(screen.getByText(/starting with a letter/)).toBeTruthy();
  expect(button('Save secret').disabled).toBe(true);
});

test('keeps the stored value unless it is replaced', async () => {
  const { api, user, onClose } = await open({ ...stored, restriction: null });
  expect(screen.queryByLabelText('Value')).toBeNull();
  await user.type(screen.getByLabelText('Description (optional)'), ' in Paris');
  await user.click(button('Save'));
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  const [{ body }] = api.received(updateSecret) as unknown as [{ body: object }];
  expect(body).toMatchObject({ description: `${stored.description} in Paris`, expires_at: stored.expires_at });
  expect(body).not.toHaveProperty('value');
});

test('requires a new value to replace the stored one, and stays open on Escape after typing', async () => {
  const { user, onClose } = await open({ ...stored, restriction: null });
  await user.click(screen.getByLabelText('Replace the value'));
  expect(button('Save').disabled).toBe(true);
  await user.type(screen.getByLabelText('Value'), 'hunter3');
  expect(button('Save').disabled).toBe(false);
  await user.keyboard('{Escape}');
  expect(onClose).not.toHaveBeenCalled();
});

test("shows the orchestrator's error", async () => {
  const { api, user, onClose } = await open({ ...stored, restriction: null });
  api.refuse(updateSecret, 'internal', 'the disk is gone');
  await user.click(button('Save'));
  expect((await screen.findByRole('alert')).textContent).toContain('the disk is gone');
  expect(onClose).not.toHaveBeenCalled();
});
