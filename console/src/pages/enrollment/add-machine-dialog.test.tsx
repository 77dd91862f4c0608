import {
  type Agent,
  type AuditEvent,
  createEnrolmentToken,
  getAgent,
  listAgents,
  listAssignments,
  listAudit,
  listTags,
  revokeEnrolmentToken,
  setAgentStatus,
} from '@muster/protocol/http';
import { cleanup, screen, waitFor, within } from '@testing-library/react';
import type { UserEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { queryClient } from '../../api/query-client.ts';
import { AddMachineDialog } from './add-machine-dialog.tsx';

const token = createEnrolmentToken.example.answer as never as Record<'id' | 'command' | 'connect_command', string>;
const agent = getAgent.example.answer as never as Agent;
const [event] = (listAudit.example.answer as never as { events: [AuditEvent] }).events;
const arrived = (event_type: string): AuditEvent => ({
  ...event,
  event_type,
  target: { type: 'agent', id: agent.node_id, name: '' },
  metadata: { enrolment_token_id: token.id },
});

async function open({
  asks = true,
  events = [],
  arriving,
}: {
  asks?: boolean;
  events?: readonly AuditEvent[];
  arriving?: Agent;
} = {}) {
  const api = fakeApi();
  // Runs before the dialog opens, because the dialog requests the agent as soon as it reads the events.
  if (arriving !== undefined) api.answer(getAgent, arriving);
  api.answerExamples(createEnrolmentToken, listAgents, listAssignments, listTags, setAgentStatus);
  api.answer(listAudit, { events: [...events], has_more: false, next_cursor: null } as never);
  api.answer(revokeEnrolmentToken, undefined as never);
  const onClose = vi.fn();
  return { api, onClose, ...(await renderPart(<AddMachineDialog asks={asks} onClose={onClose} />)) };
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
  const [, close] = screen.getAllByRole('button', { name: 'Close' });
  await user.click(close as HTMLElement);
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
  await screen.findByText(/Waiting for the machine/);
  const [{ body }] = api.received(createEnrolmentToken) as unknown as [{ body: object }];
  expect(body).toMatchObject({ uses: 10, approve: false });
  expect(body).not.toHaveProperty('name');
});

test('explains that no installation command is available', async () => {
  const { api, user } = await open();
  api.answer(createEnrolmentToken, { ...token, command: token.connect_command, note: 'no agent program' } as never);
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  expect(await screen.findByText('The agent must already be installed')).toBeTruthy();
  expect(screen.queryByText('If the agent is already installed:')).toBeNull();
});

test('shows a note about the address in an installation command', async () => {
  const { api, user } = await open();
  api.answer(createEnrolmentToken, { ...token, note: 'The machine must be able to resolve vm.' } as never);
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  expect(await screen.findByText('Check the address')).toBeTruthy();
  expect(screen.queryByText('The agent must already be installed')).toBeNull();
});

test('shows an error for an invalid tag', async () => {
  const { api, user } = await open();
  await user.type(screen.getByLabelText('Tags (optional)'), 'role');
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  expect((await screen.findByRole('alert')).textContent).not.toBe('');
  expect(api.received(createEnrolmentToken)).toEqual([]);
});

const copyCommand = async ({ user }: { user: UserEvent }) => {
  await user.click(screen.getByRole('button', { name: 'Copy command' }));
  await screen.findByText('Waiting for the machine to connect…');
};

test('creates no token if the dialog closes without use', async () => {
  const { api, user, onClose } = await open({ asks: false });
  expect(screen.getByText('The command contains a new token for 1 machine, valid for 1 hour.')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Cancel' }));
  expect(onClose).toHaveBeenCalled();
  cleanup();
  expect(api.received(createEnrolmentToken)).toEqual([]);
  expect(api.received(revokeEnrolmentToken)).toEqual([]);
});

test('creates a token, copies its command, and waits for the machine with one click', async () => {
  const opened = await open({ asks: false });
  await copyCommand(opened);
  expect(await screen.findByText('Command copied')).toBeTruthy();
  expect(await navigator.clipboard.readText()).toBe(token.command);
  expect(opened.api.received(createEnrolmentToken)).toMatchObject([{ body: { uses: 1, approve: true, tags: {} } }]);
  cleanup();
  expect(opened.api.received(revokeEnrolmentToken)).toEqual([]);
});

test('revokes the token if the dialog closes before the command is copied', async () => {
  const { api, user } = await open({ asks: false });
  let deny = () => {};
  vi.spyOn(navigator.clipboard, 'write').mockImplementation(
    () => new Promise((_, reject) => (deny = () => reject(new Error('denied')))),
  );
  await user.click(screen.getByRole('button', { name: 'Copy command' }));
  await waitFor(() => expect(api.received(createEnrolmentToken)).toHaveLength(1));
  cleanup();
  deny();
  await waitFor(() => expect(api.received(revokeEnrolmentToken)).toMatchObject([{ params: { id: token.id } }]));
});

test('says that the command was not copied, and shows it', async () => {
  const opened = await open({ asks: false });
  vi.spyOn(navigator.clipboard, 'write').mockRejectedValue(new Error('denied'));
  await copyCommand(opened);
  expect(await screen.findByText(/did not copy the command/)).toBeTruthy();
  const codes = screen.getByRole('dialog').querySelectorAll('code');
  expect([...codes].map(({ textContent }) => textContent)).toContain(token.command);
});

test('shows the command before all other text about the token', async () => {
  await copyCommand(await open({ asks: false }));
  const text = screen.getByRole('dialog').textContent;
  expect(text).toContain(`Run this command as root on the machine:${token.command}`);
  expect(text.indexOf(token.command)).toBeLessThan(text.indexOf('It enrolls 1 machine until'));
});

test('shows a machine that arrives, with its modules and a link to its page', async () => {
  const opened = await open({ asks: false });
  await copyCommand(opened);
  const { api } = opened;
  api.answer(getAgent, agent);
  api.answer(listAudit, { events: [arrived('agent.approved')], has_more: false, next_cursor: null } as never);
  await queryClient.invalidateQueries({ queryKey: ['audit'] });
  expect(await screen.findByText('connected')).toBeTruthy();
  expect(screen.queryByText(/^Waiting/)).toBeNull();
  expect(screen.getByRole('link', { name: 'Open' }).getAttribute('href')).toBe('/agents/web-1');
  expect(await screen.findByText(/Its assignments include 1 module/)).toBeTruthy();
});

test('approves a machine that connects in the pending state', async () => {
  const arriving: Agent = { ...agent, name: null, status: 'pending' };
  const { api, user } = await open({ asks: false, events: [arrived('agent.pending')], arriving });
  await user.click(screen.getByRole('button', { name: 'Copy command' }));
  await user.click(await screen.findByRole('button', { name: 'Approve…' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Approve this agent' }));
  await user.click(dialog.getByRole('button', { name: 'Approve' }));
  expect(await screen.findByText(/Its assignments include/)).toBeTruthy();
  expect(api.received(setAgentStatus)).toHaveLength(1);
});

test('revokes the first token when another one is created with options', async () => {
  const opened = await open({ asks: false });
  const { api, user } = opened;
  await copyCommand(opened);
  await user.click(screen.getByRole('button', { name: 'Options…' }));
  await user.click(screen.getByRole('button', { name: 'Create token' }));
  await waitFor(() => expect(api.received(revokeEnrolmentToken)).toMatchObject([{ params: { id: token.id } }]));
  expect(api.received(createEnrolmentToken)).toHaveLength(2);
});

test('states what the token permits', async () => {
  await copyCommand(await open({ asks: false }));
  const text = (await screen.findByText(/It enrolls 1 machine until/)).textContent;
  expect(text).toContain('The agent is approved automatically.');
});
