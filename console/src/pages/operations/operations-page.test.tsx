import { listAgents, listOperations, listOperators, type OperationEntry } from '@muster/protocol/http';
import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { OperationsPage } from './operations-page.tsx';

const answer = listOperations.example.answer as never as { operations: [OperationEntry] };
const plan = (id: string): OperationEntry => ({
  ...{ ...answer.operations[0], operation_id: id, kind: 'plan', run_id: 'RUN' },
});

test.each([
  ['', ['2 agents'], '/runs/RUN'],
  ['?kind=plan', ['web-1', 'web-1'], '/operations/1'],
])('shows the plans of a run as one row, unless the operator filters by plans (%s)', async (query, names, target) => {
  const api = fakeApi();
  api.answerExamples(listAgents, listOperators);
  api.answer(listOperations, { ...answer, operations: [plan('1'), plan('2')] } as never);
  await renderPage(OperationsPage, { at: `/${query}` });
  await screen.findAllByText(names[0] as string);
  const links = screen.getAllByRole('link');
  expect(links.map(({ textContent }) => textContent)).toEqual(names.map((name) => `plan${name}`));
  expect(links[0]?.getAttribute('href')).toBe(target);
});
