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
