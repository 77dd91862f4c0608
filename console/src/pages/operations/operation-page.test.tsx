import {
  getOperation,
  getOperationOutput,
  listAgents,
  listOperators,
  listRuns,
  type Operation,
} from '@muster/protocol/http';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { OperationPage } from './operation-page.tsx';

const example = getOperation.example.answer as never as Operation;

async function open(part: Partial<Operation>, plan?: Operation) {
  const api = fakeApi();
  api.answerExamples(listAgents, listOperators, listRuns, getOperationOutput);
  api.answer(
    getOperation,
    ({ params }) => (params.operation_id === plan?.operation_id ? plan : { ...example, ...part }) as never,
  );
  const at = `/operations/${example.operation_id}`;
  await renderPage(OperationPage, { path: '/operations/$operation', at });
  await screen.findByText('Duration');
}
const namesOfFacts = () => screen.getAllByRole('term').map(({ textContent }) => textContent);
const fact = (name: string) => screen.getByText(name).nextElementSibling?.textContent;
const times = { created_at: 1_795_000_000, started_at: 1_795_000_000, finished_at: 1_795_000_000 };

test('shows how long an operation took, even if it took less than a second', async () => {
  await open({ status: 'succeeded', ...times });
  expect(fact('Duration')).toMatch(/^<1s, ended /);
  // The start equals the time of the request.
  expect(namesOfFacts()).not.toContain('Started');
});

test('shows the start of an operation that was queued', async () => {
  await open({ status: 'succeeded', ...times, started_at: times.created_at + 60, finished_at: times.created_at + 75 });
  expect(fact('Duration')).toMatch(/^15s, ended /);
  expect(namesOfFacts()).toContain('Started');
});

test('shows the primary action last, as other pages do', async () => {
  await open({ kind: 'plan', status: 'succeeded', ...times, summary: { ...example.summary, changed: 1 } });
  const names = screen.getAllByRole('button').map(({ textContent }) => textContent);
  expect(names.indexOf('Plan again')).toBeLessThan(names.indexOf('Apply this plan…'));
});

const crumbs = () =>
  within(screen.getByRole('navigation', { name: 'Breadcrumb' }))
    .getAllByRole('link')
    .map(({ textContent }) => textContent);

test('names the agent in the breadcrumb and in the title of the tab', async () => {
  await open({ status: 'succeeded', ...times, run_id: null });
  await screen.findAllByText('web-1');
  expect(crumbs()).toEqual(['Operations', 'web-1']);
  await waitFor(() => expect(document.title).toContain('on web-1'));
});

test('shows in the breadcrumb what the operation’s run applies', async () => {
  const [run] = listRuns.example.answer;
  await open({ status: 'succeeded', ...times, run_id: run.run_id, kind: 'apply' });
  await screen.findAllByText(`Apply of ${run.assignment}`);
  expect(crumbs()).toEqual(['Operations', `Apply of ${run.assignment}`]);
});

test('describes a removed agent in words instead of showing its id', async () => {
  await open({ status: 'succeeded', ...times, node_id: 'f'.repeat(32), run_id: null });
  expect(await screen.findAllByText('removed agent')).toHaveLength(2);
  expect(screen.queryByText('f'.repeat(32))).toBe(null);
});

test('shows when the stale plan was requested', async () => {
  const created_at = Math.floor(Date.now() / 1000) - 7_500;
  const plan: Operation = { ...example, operation_id: '01KAGZ4D3E5F6G7H8J9K0M1N2Q', kind: 'plan', created_at };
  const error = 'plan_stale: the machine has changed since the plan';
  await open({ kind: 'apply', status: 'failed', ...times, plan_id: plan.operation_id, error }, plan);
  expect((await screen.findByText(/The plan was requested/)).textContent).toBe('The plan was requested 2h ago.');
});
