import type { Window } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { Agenda } from './agenda.tsx';
import { shownWeeks } from './month.ts';

const at = (day: number, hour: number) => new Date(2026, 10, day, hour).getTime() / 1000;
const window: Window = {
  ...{ id: '01KAGZ8S4F6G7H8J9K0M1N2P3Q', starts_at: at(10, 22), ends_at: at(11, 2) },
  ...{ reason: 'kernel updates in Paris', created_by: 'o', selector: null },
};
const now = at(10, 12) * 1000;
const month = { weeks: shownWeeks(2026, 10, now), now };

test('lists the days of a month that have windows, and opens a window', async () => {
  fakeApi();
  const opened: string[] = [];
  const { user } = await renderPart(
    <Agenda {...month} windows={[window]} onWindow={({ id }) => void opened.push(id)} />,
  );
  const list = screen.getByRole('list', { name: 'Agenda' });
  expect(within(list).getByRole('heading', { level: 3 }).textContent).toMatch(/10.*\(today\)$/);
  await user.click(within(list).getByRole('button', { name: /kernel updates in Paris/ }));
  expect(opened).toEqual([window.id]);
});

test('offers no buttons to an operator who cannot change windows', async () => {
  fakeApi();
  await renderPart(<Agenda {...month} windows={[window]} />);
  expect(screen.getByText('kernel updates in Paris')).toBeTruthy();
  expect(screen.queryByRole('button')).toBe(null);
});

test('shows that a month has no windows', async () => {
  fakeApi();
  await renderPart(<Agenda {...month} windows={[]} />);
  expect(screen.getByText('No windows in this period')).toBeTruthy();
});
