import { createEnrolmentToken } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { TokenForm } from './token-form.tsx';

async function open() {
  const api = fakeApi();
  api.answerExamples(createEnrolmentToken);
  const onClose = vi.fn();
  return { api, onClose, ...(await renderPart(<TokenForm onClose={onClose} />)) };
}
const name = () => screen.queryByLabelText('Name (optional)') as HTMLInputElement | null;

test('creates a token for one named machine and shows its commands', async () => {
  const { api, user, onClose } = await open();
  await user.type(name() as HTMLElement, ' web-2 ');
  await user.type(screen.getByLabelText('Tags (optional)'), 'role=web');
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  expect(await screen.findByText('The token is shown only once.', { exact: false })).toBeTruthy();
  expect(screen.getByText('If the agent is already installed:')).toBeTruthy();
  expect(api.received(createEnrolmentToken)).toMatchObject([
    { body: { expires_in: 3_600, uses: 1, approve: true, name: 'web-2', tags: { role: 'web' } } },
  ]);
  await user.click(screen.getByRole('button', { name: 'Done' }));
  expect(onClose).toHaveBeenCalled();
});

test('sends no name unless the token enrolls one machine with automatic approval', async () => {
  const { api, user } = await open();
  await user.type(name() as HTMLElement, 'web-2');
  await user.click(screen.getByLabelText('Approve automatically'));
  expect(name()?.disabled).toBe(true);
  expect(name()?.value).toBe('');
  await user.type(screen.getByLabelText('Number of machines'), '0');
  expect(name()).toBeNull();
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  await screen.findByText('Run this on the machine');
  const [{ body }] = api.received(createEnrolmentToken) as unknown as [{ body: object }];
  expect(body).toMatchObject({ uses: 10, approve: false });
  expect(body).not.toHaveProperty('name');
});

test('explains that no installation command is available', async () => {
  const { api, user } = await open();
  const made = createEnrolmentToken.example.answer as never as { connect_command: string };
  api.answer(createEnrolmentToken, { ...made, command: made.connect_command, note: 'no agent program' } as never);
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  expect(await screen.findByText('The agent must already be installed')).toBeTruthy();
  expect(screen.queryByText('If the agent is already installed:')).toBeNull();
});

test('shows an error for an invalid tag', async () => {
  const { api, user } = await open();
  await user.type(screen.getByLabelText('Tags (optional)'), 'role');
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  expect((await screen.findByRole('alert')).textContent).not.toBe('');
  expect(api.received(createEnrolmentToken)).toEqual([]);
});
