import { listSessions } from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { SessionsPage } from './sessions-page.tsx';

test('lists the session that was used last first', async () => {
  const [example] = listSessions.example.answer;
  const used = (user_agent: string, last_used_at: number | null, signed_in_at: number) => ({
    ...example,
    ...{ id: user_agent, user_agent, last_used_at, signed_in_at },
  });
  const sessions = [used('old/1', 200, 100), used('unused/1', null, 300), used('new/1', 400, 100)];
  fakeApi().answer(listSessions, sessions as never);
  await renderPage(SessionsPage);
  const rows = within(await screen.findByRole('grid', { name: 'Sessions' })).getAllByRole('row');
  expect(rows.slice(1).map((row) => within(row).getAllByRole('gridcell')[0]?.textContent)).toEqual([
    expect.stringContaining('new/1'),
    expect.stringContaining('unused/1'),
    expect.stringContaining('old/1'),
  ]);
});
