import {
  type Agent,
  type Assignment,
  listAgents,
  listAssignments,
  listReconcile,
  listRuns,
  matchSelector,
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

test('distinguishes assignments whose agents were never applied, and plans from applies', async () => {
  const api = fakeApi();
  api.answer(listReconcile, []);
  api.answer(listAgents, [named('web'), named('db')] as never);
  api.answer(matchSelector, { matches: [named('db').node_id] });
  api.answer(listAssignments, [
    { ...assignment, name: 'all', selector: 'role in (web,db)' },
    { ...assignment, name: 'db', selector: 'role=db' },
    { ...assignment, name: 'web', selector: 'role=web' },
  ] as never);
  api.answer(listRuns, [{ ...run, assignment: 'web', kind: 'plan', status: 'succeeded' }] as never);
  await renderPage(AssignmentsPage);
  const table = within(await screen.findByRole('grid', { name: 'Assignments' }));
  expect(await table.findByText('1 never applied')).toBeTruthy();
  const ends = table.getAllByRole('row').map((row) =>
    within(row)
      .queryAllByRole('gridcell')
      .slice(-2)
      .map(({ textContent }) => textContent),
  );
  expect(ends.slice(1)).toEqual([
    ['1 never applied', 'never run'],
    ['never applied', 'never run'],
    ['in sync', expect.stringMatching(/^plansucceeded/)],
  ]);
});
