import {
  type Agent,
  type Assignment,
  listAgents,
  listAssignments,
  listReconcile,
  listRuns,
  matchSelector,
  type OffAgent,
  type RunEntry,
} from '@muster/protocol/http';
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { AssignmentsPage } from './assignments-page.tsx';

const [agent] = listAgents.example.answer as never as [Agent];
const [assignment] = listAssignments.example.answer as never as [Assignment];
const [run] = listRuns.example.answer as never as [RunEntry];
const named = (name: string): Agent => ({ ...agent, node_id: name.padEnd(32, '0'), name, tags: { role: name } });

test('shows the last apply of each assignment, however many runs are newer', async () => {
  const api = fakeApi();
  api.answer(listReconcile, []);
  api.answer(listAgents, [named('web'), named('db')] as never);
  api.answer(matchSelector, { matches: [named('db').node_id] });
  api.answer(listAssignments, [
    { ...assignment, name: 'all', selector: 'role in (web,db)' },
    { ...assignment, name: 'db', selector: 'role=db' },
    { ...assignment, name: 'web', selector: 'role=web' },
  ] as never);
  const last = { ...run, assignment: 'web', kind: 'apply', status: 'halted' };
  api.answer(listRuns, ({ query }) => (query.kind === 'apply' && query.latest === 'true' ? [last] : []) as never);
  await renderPage(AssignmentsPage);
  const table = within(await screen.findByRole('grid', { name: 'Assignments' }));
  expect(await table.findAllByText('1 never applied')).toHaveLength(2);
  const ends = table.getAllByRole('row').map((row) =>
    within(row)
      .queryAllByRole('gridcell')
      .slice(-2)
      .map(({ textContent }) => textContent),
  );
  expect(ends.slice(1)).toEqual([
    ['1 never applied', 'never applied'],
    ['1 never applied', 'never applied'],
    ['in sync', expect.stringMatching(/^halted/)],
  ]);
});

test('counts the agents by finding, each in its tone, and labels the mode with one word', async () => {
  const api = fakeApi();
  const [off] = listReconcile.example.answer as never as [OffAgent];
  const { outdated, ...differs } = { ...off, reasons: ['drifted'] };
  const members = ['a', 'b', 'c'].map((name) => ({ ...named(name), tags: { role: 'web' } }));
  const [a, b, c] = members.map(({ node_id, name }) => ({ node_id, name }));
  const newer = outdated ?? { modules: 1, examples: [] };
  api.answer(listReconcile, [
    { ...differs, ...a, reasons: ['apply_failed'] },
    { ...differs, ...b, reasons: [], drift: [], outdated: newer },
    { ...differs, ...c, reasons: [], drift: [], outdated: newer },
  ] as never);
  api.answer(listAgents, members as never);
  api.answer(matchSelector, { matches: [] });
  api.answer(listAssignments, [{ ...assignment, selector: 'role=web', mode: 'enforce', window_only: true }] as never);
  api.answer(listRuns, [] as never);
  await renderPage(AssignmentsPage);
  const table = within(await screen.findByRole('grid', { name: 'Assignments' }));
  const failed = await table.findByText('1 apply failed');
  expect(failed.parentElement?.querySelector('.bg-bad')).toBeTruthy();
  expect(table.getByText('2 outdated').parentElement?.querySelector('.bg-mild')).toBeTruthy();
  expect(failed.closest('[title]')?.getAttribute('title')).toBe('1 apply failed, 2 outdated');
  expect(table.queryByText('enforce')).toBeNull();
  expect(table.getAllByText('windows only').length).toBeGreaterThan(0);
});
