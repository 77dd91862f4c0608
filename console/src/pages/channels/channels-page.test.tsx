import { type Channel, listChannels, listOperators, testChannel } from '@muster/protocol/http';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { ChannelsPage } from './channels-page.tsx';

const [working] = listChannels.example.answer as never as [Channel];
const failing: Channel = {
  ...working,
  ...{ id: '01KAGZ8R3E5F6G7H8J9K0M1N2Q', name: 'team', channel_type: 'slack' },
  config: { webhook_url: 'https://hooks.slack.com/••••' },
  delivery: {
    ...{ last_delivered_at: null, last_error: 'the receiver answered 500', failures: 7 },
    ...{ failing_since: 1795000000, next_attempt_at: 1795003600 },
  },
};

function orchestrator() {
  const api = fakeApi();
  api.answerExamples(listOperators);
  api.answer(listChannels, [working, failing]);
  return api;
}

const table = async () => within(await screen.findByRole('grid', { name: 'Channels' }));
const names = (all: HTMLElement[]) => all.slice(1).map((row) => within(row).getAllByRole('button')[0]?.textContent);

test('shows whether deliveries succeed, and sorts the failing channels first', async () => {
  orchestrator();
  const { user } = await renderPage(ChannelsPage);
  const list = await table();
  expect(names(list.getAllByRole('row'))).toEqual(['on-call', 'team']);
  expect(list.getByText('the receiver answered 500')).toBeTruthy();
  await user.click(list.getByRole('button', { name: 'Status' }));
  expect(names(list.getAllByRole('row'))).toEqual(['team', 'on-call']);
});

test('filters by status', async () => {
  orchestrator();
  await renderPage(ChannelsPage, { at: '/?state=failing' });
  expect(names((await table()).getAllByRole('row'))).toEqual(['team']);
});

test('shows the configuration of a channel, and why its deliveries fail, below its row', async () => {
  orchestrator();
  const { user } = await renderPage(ChannelsPage);
  const list = await table();
  const toggle = list.getByRole('button', { name: 'team' });
  expect(toggle.getAttribute('aria-expanded')).toBe('false');
  await user.click(toggle);
  expect(toggle.getAttribute('aria-expanded')).toBe('true');
  const facts = [...document.querySelectorAll('dt')].map((each) => each.textContent);
  expect(facts).toEqual(['Address', 'Last delivery', 'Last error', 'Failed attempts', 'Next attempt', 'Added']);
  await user.click(screen.getByText('Failed attempts'));
  expect(toggle.getAttribute('aria-expanded')).toBe('true');
});

test('shows the outcome of a test below the row of its channel', async () => {
  const api = orchestrator();
  api.answerExamples(testChannel);
  const { user } = await renderPage(ChannelsPage);
  const list = await table();
  await user.click(list.getByRole('button', { name: 'Send test to on-call' }));
  const announcements = within(await screen.findByRole('region', { name: /^Notifications/ }));
  expect(await announcements.findByText(/^Test delivered: the server responded with \d+$/)).toBeTruthy();
  expect(within(screen.getByRole('grid')).getByText(/^Test delivered: the server responded with \d+$/)).toBeTruthy();
  expect(api.received(testChannel)).toMatchObject([{ params: { id: working.id } }]);
  api.refuse(testChannel, 'internal', 'connection refused');
  await user.click(list.getByRole('button', { name: 'Send test to team' }));
  await waitFor(() => expect(screen.getByRole('alert').textContent).toContain('connection refused'));
});

test('offers no changes to operators who are not admins', async () => {
  orchestrator();
  await renderPage(ChannelsPage, { role: 'operator' });
  const list = await table();
  expect(list.queryByRole('columnheader', { name: 'Actions' })).toBeNull();
  expect(screen.queryByRole('button', { name: 'Add channel' })).toBeNull();
});
