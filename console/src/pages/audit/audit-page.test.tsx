import { type AuditEvent, listAudit, listOperators } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { AuditPage } from './audit-page.tsx';

const [example] = listAudit.example.answer.events as [AuditEvent];
const signIn = (id: string, event_type: string, summary: string): AuditEvent => ({
  ...{ ...example, id, event_type, summary, timestamp: new Date().toISOString() },
  target: { type: '', id: '', name: '' },
});
const events = [
  signIn('1', 'auth.console_opened', 'ada opened a console session'),
  signIn('2', 'auth.signed_in', 'ada signed in'),
  signIn('3', 'auth.web_login_requested', 'ada requested a sign-in link'),
];

async function open(at = '/') {
  const api = fakeApi();
  api.answerExamples(listOperators);
  api.answer(listAudit, { events, has_more: false, next_cursor: null });
  return renderPage(AuditPage, { path: '/', at });
}

test('shows a sign-in as one row that opens to its events', async () => {
  const { user, address } = await open();
  expect(await screen.findByText('ada signed in')).toBeTruthy();
  expect(screen.getByText('and 2 related events')).toBeTruthy();
  expect(screen.queryByText('ada opened a console session')).toBeNull();
  expect(screen.getByRole('heading', { name: 'Today' })).toBeTruthy();
  await user.click(screen.getByRole('button', { name: /^3 events: / }));
  const list = within(screen.getByRole('list', { name: 'Related events' }));
  expect(list.getAllByRole('listitem')).toHaveLength(3);
  await user.click(list.getByRole('button', { name: /^Details of “Console session opened”/ }));
  expect(address()).toContain('event=1');
  expect(screen.getByText('auth.console_opened')).toBeTruthy();
});

test('opens the row of the event that a link names', async () => {
  await open('/?event=3');
  expect(await screen.findByText('auth.web_login_requested')).toBeTruthy();
});
