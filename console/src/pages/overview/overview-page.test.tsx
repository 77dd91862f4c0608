import {
  type Agent,
  type AuditEvent,
  getAssignment,
  getOperation,
  getOverview,
  listAgents,
  listAssignments,
  listAudit,
  listModules,
  listOperators,
  listReconcile,
  listRuns,
  type OffAgent,
  type Overview,
  planAgent,
  type RunEntry,
  setAgentStatus,
} from '@muster/protocol/http';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { OverviewPage } from './overview-page.tsx';

test('shows the state of the agents below the first steps, even without an assignment', async () => {
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

const { outdated: _, ...example } = listReconcile.example.answer[0] as never as OffAgent;
const drifted = {
  ...example,
  ...{ reasons: ['drifted'], connected: true, failed_operation: null, unapplied: 0, pending_removals: 0 },
} as never as OffAgent;

/** @param isAnswered whether the orchestrator returns the list of drifted agents */
async function openDrifted(agent: OffAgent, isAnswered = true) {
  const api = fakeApi();
  api.answerExamples(listOperators, listAssignments, listModules, getAssignment, planAgent);
  api.answer(getOperation, planAgent.example.answer as never);
  api.answer(listRuns, []);
  api.answer(listAudit, { events: [], next_cursor: null, has_more: false } as never);
  const overview = getOverview.example.answer as never as Overview;
  api.answer(getOverview, { ...overview, off: { ...overview.off, agents: 1, drifted: 1 } });
  if (isAnswered) api.answer(listReconcile, [agent]);
  else api.hold(listReconcile);
  const { user } = await renderPage(OverviewPage);
  await user.click(await screen.findByRole('button', { name: 'Apply… 1 agent has drifted' }));
  return api;
}

test('plans and repairs drift without opening the list of agents', async () => {
  const api = await openDrifted(drifted);
  const dialog = await screen.findByRole('dialog', { name: `Apply to ${drifted.name}` });
  expect(await within(dialog).findByRole('button', { name: 'Apply 1 change' })).toBeTruthy();
  expect(api.received(listReconcile)).toMatchObject([{ query: { reason: 'drifted' } }]);
});

test('adds the first machine with the dialog on the agents page', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators);
  for (const route of [listAssignments, listModules, listRuns]) api.answer(route, []);
  api.answer(listAudit, { events: [], next_cursor: null, has_more: false } as never);
  const overview = getOverview.example.answer as never as Overview;
  api.answer(getOverview, { ...overview, agents: { pending: 0, rejected: 0, approved: 0, connected: 0, lost: 0 } });
  const { user, address } = await renderPage(OverviewPage);
  await user.click(await screen.findByRole('link', { name: 'Add machine' }));
  expect(address()).toBe('/agents');
});

test('shows the number of agents while they are loading', async () => {
  const api = await openDrifted(drifted, false);
  expect(await screen.findByRole('dialog', { name: 'Apply to 1 agent' })).toBeTruthy();
  expect(api.received(listReconcile)).toHaveLength(1);
});

test('shows the panels while their content is loading', async () => {
  const api = fakeApi();
  api.answerExamples(listAssignments, listModules);
  api.hold(getOverview);
  await renderPage(OverviewPage);
  expect(screen.getByRole('status', { name: 'Loading the overview' })).toBeTruthy();
  expect(screen.getAllByRole('heading', { level: 2 }).map(({ textContent }) => textContent)).toEqual([
    ...['Needs attention', 'Agents', 'In progress', 'Recent events'],
  ]);
});

test('states that an apply does not repair the drift of an audit assignment', async () => {
  await openDrifted({ ...drifted, drift: drifted.drift.map((each) => ({ ...each, assignment: 'audit' })) });
  expect(await screen.findByText(/An apply changes none of these agents/)).toBeTruthy();
});

test('omits plans from the recent events', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators, listAssignments, listModules, getOverview);
  api.answer(listRuns, []);
  const [event] = (listAudit.example.answer as never as { events: [AuditEvent] }).events;
  const events = [
    { ...event, id: '1', event_type: 'state.planned', summary: 'plan on web-1 succeeded' },
    { ...event, id: '2', event_type: 'state.applied', summary: 'apply on web-1 succeeded' },
  ];
  api.answer(listAudit, { events, next_cursor: null, has_more: false } as never);
  await renderPage(OverviewPage);
  expect(await screen.findByText('Apply on web-1 succeeded')).toBeTruthy();
  expect(screen.queryByText('Plan on web-1 succeeded')).toBeNull();
});

test('lists running runs as in progress, and runs that have ended under their own heading', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators, listAssignments, listModules, getOverview);
  api.answer(listAudit, { events: [], next_cursor: null, has_more: false } as never);
  const [run] = listRuns.example.answer as never as [RunEntry];
  const now = Math.floor(Date.now() / 1000);
  const ended = { ...run, run_id: 'ended', assignment: 'db', status: 'failed', finished_at: now - 60 } as RunEntry;
  const running = { ...run, run_id: 'running', assignment: 'web', status: 'running', finished_at: null } as RunEntry;
  const old = { ...ended, run_id: 'old', assignment: 'base', finished_at: now - 200_000 };
  // The first run has ended since the orchestrator listed it as running.
  api.answer(listRuns, [ended, running, old]);
  await renderPage(OverviewPage);
  const panel = async (name: string) =>
    (await screen.findByRole('heading', { name })).closest('section')?.querySelector('ul')?.textContent;
  const endedText = await panel('Recently ended');
  expect(endedText).toContain('db');
  expect(endedText).toContain('failed');
  expect(endedText).not.toContain('base');
  const runningText = await panel('In progress');
  expect(runningText).toContain('web');
  expect(runningText).not.toContain('db');
});

test('marks the names and counts that are links as links', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators, listAssignments, listModules, listAudit);
  const overview = getOverview.example.answer as never as Overview;
  api.answer(getOverview, { ...overview, off: { ...overview.off, drifted: 2 }, operations: { queued: 3, running: 1 } });
  const [run] = listRuns.example.answer as never as [RunEntry];
  const now = Math.floor(Date.now() / 1000);
  api.answer(listRuns, [{ ...run, assignment: 'web', status: 'failed', finished_at: now - 60 } as RunEntry]);
  await renderPage(OverviewPage);
  const marked = (text: string) => screen.getAllByText(text).some((each) => each.closest('.text-accent')?.closest('a'));
  await screen.findByText('web');
  for (const text of ['2 agents have drifted', 'web', '1 operation running', '3 queued'])
    expect([text, marked(text)]).toEqual([text, true]);
  expect(await screen.findByText('Agent web-1 approved')).toBeTruthy();
  expect(marked('Agent web-1 approved')).toBe(true);
});

async function openPending(count: number) {
  const api = fakeApi();
  api.answerExamples(listOperators, listAssignments, listModules, setAgentStatus);
  api.answer(listRuns, []);
  api.answer(listAudit, { events: [], next_cursor: null, has_more: false } as never);
  const overview = getOverview.example.answer as never as Overview;
  api.answer(getOverview, { ...overview, agents: { ...overview.agents, pending: count } });
  const [example] = listAgents.example.answer as never as [Agent];
  const agents = Array.from({ length: count }, (_, index): Agent => {
    const own = { node_id: `${index + 1}`.repeat(32), initial_hostname: `new-${index + 1}` };
    return { ...example, ...own, name: null, status: 'pending' };
  });
  api.answer(listAgents, agents as never);
  const { user } = await renderPage(OverviewPage);
  await user.click(await screen.findByRole('button', { name: /^Approve…/ }));
  // The dialog waits for the list of agents.
  await screen.findByText('1'.repeat(32));
  return { api, user, dialog: within(screen.getByRole('dialog')) };
}

test('approves a pending agent without opening the list of agents', async () => {
  const { api, user, dialog } = await openPending(1);
  await user.click(dialog.getByRole('button', { name: 'Approve' }));
  await waitFor(() => expect(api.received(setAgentStatus)).toMatchObject([{ params: { node_id: '1'.repeat(32) } }]));
});

test('approves only the pending agents that the operator ticks, and rejects one of them', async () => {
  const { api, user, dialog } = await openPending(3);
  expect(dialog.getByText('Select the agents to approve.')).toBeTruthy();
  expect((dialog.getByRole('button', { name: 'Approve 0' }) as HTMLButtonElement).disabled).toBe(true);
  await user.click(dialog.getByRole('checkbox', { name: 'Select all' }));
  expect(dialog.getByRole('button', { name: 'Approve 3' })).toBeTruthy();
  await user.click(dialog.getByRole('checkbox', { name: 'Select new-1' }));
  await user.click(dialog.getByRole('button', { name: 'Reject new-2' }));
  await user.click(await screen.findByRole('button', { name: 'Reject agent' }));
  expect(await dialog.findByText('rejected')).toBeTruthy();
  await user.click(dialog.getByRole('button', { name: 'Approve 1' }));
  await waitFor(() =>
    expect(api.received(setAgentStatus)).toMatchObject([
      { params: { node_id: '2'.repeat(32) }, body: { status: 'rejected' } },
      { params: { node_id: '3'.repeat(32) }, body: { status: 'approved', name: 'new-3' } },
    ]),
  );
});

test('lists applies that ended recently, failures first, and requests no plans', async () => {
  const api = fakeApi();
  api.answerExamples(listOperators, listAssignments, listModules, getOverview);
  api.answer(listAudit, { events: [], next_cursor: null, has_more: false } as never);
  const finished_at = Math.floor(Date.now() / 1_000) - 60;
  const ended = (assignment: string, kind: RunEntry['kind'], status: RunEntry['status']) =>
    ({ ...listRuns.example.answer[0], run_id: assignment, assignment, kind, status, finished_at }) as RunEntry;
  const runs = [
    ended('web', 'plan', 'succeeded'),
    ended('mail', 'apply', 'succeeded'),
    ended('dns', 'apply', 'halted'),
  ];
  api.answer(listRuns, ({ query }) => runs.filter(({ kind }) => query.kind === undefined || kind === query.kind));
  await renderPage(OverviewPage);
  const list = await screen.findByRole('list', { name: 'Recently ended runs' });
  const names = within(list)
    .getAllByRole('link')
    .map(({ textContent }) => textContent);
  expect(names).toEqual([expect.stringContaining('dns'), expect.stringContaining('mail')]);
});
