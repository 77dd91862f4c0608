import {
  getOverview,
  listAssignments,
  listAudit,
  listModules,
  listOperators,
  listRuns,
  type Overview,
} from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { OverviewPage } from './overview-page.tsx';

test('shows the state of the agents below the first steps, also without an assignment', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators);
  api.answer(listAssignments, []);
  api.answer(listModules, []);
  api.answer(listRuns, []);
  api.answer(listAudit, { events: [], next_cursor: null, has_more: false } as never);
  api.answer(getOverview, {
    ...(getOverview.example.answer as never as Overview),
    agents: { pending: 0, rejected: 0, approved: 10_000, connected: 0, lost: 10_000 },
  });
  await renderPage(OverviewPage);
  expect(await screen.findByText('10,000 agents are offline')).toBeTruthy();
  const states = within(screen.getByRole('list', { name: 'Agents by state' })).getAllByRole('listitem');
  expect(states.map(({ textContent }) => textContent)).toContain('offline10,000');
  expect(await screen.findByRole('heading', { name: 'Get started' })).toBeTruthy();
});
