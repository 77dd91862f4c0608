import { listAudit } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { EventRow } from './event-row.tsx';

const [event] = listAudit.example.answer.events;

test.each([
  [true, false],
  [false, true],
])('truncates the sentence of an event, unless the event is open (open: %s)', async (open, isTruncated) => {
  if (event === undefined) throw new Error('the example has no event');
  fakeApi();
  await renderPage(() => <EventRow event={event} open={open} onToggle={() => {}} />);
  expect((await screen.findByText('Agent web-1 approved')).classList.contains('truncate')).toBe(isTruncated);
});

test('shows the type of an event only in its details, in words and as a code', async () => {
  if (event === undefined) throw new Error('the example has no event');
  fakeApi();
  const metadata = { modules: [], summary: { changed: 2, to_remove: 0 }, tags: ['a', 'b'] };
  await renderPage(() => <EventRow event={{ ...event, metadata } as never} open onToggle={() => {}} />);
  expect((await screen.findAllByText('Agent approved')).length).toBe(1);
  expect(screen.getByText('agent.approved').tagName).toBe('CODE');
  expect(screen.getByText('changed 2, to remove 0')).toBeTruthy();
  expect(screen.getByText('a, b')).toBeTruthy();
  expect(screen.queryByText('Modules')).toBeNull();
});

test('names the actor next to the sentence for phones, unless the sentence does', async () => {
  if (event === undefined) throw new Error('the example has no event');
  fakeApi();
  const row = (summary: string) => ({ ...event, id: summary, summary, actor: { ...event.actor, name: 'ada' } });
  await renderPage(() => (
    <>
      <EventRow event={row('module web created')} open={false} onToggle={() => {}} />
      <EventRow event={row('ada signed in')} open={false} onToggle={() => {}} />
    </>
  ));
  const [created, signedIn] = await screen.findAllByRole('listitem');
  expect(created?.querySelector('.md\\:hidden')?.textContent).toBe('ada');
  expect(signedIn?.querySelector('.md\\:hidden')).toBeNull();
});
