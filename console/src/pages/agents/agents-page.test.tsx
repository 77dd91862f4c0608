import type { Sample } from '@muster/protocol';
import {
  type Agent,
  agentExample,
  createEnrolmentToken,
  getAgent,
  latestSamples,
  listAgents,
  listReconcile,
  listTags,
  matchSelector,
  type OffAgent,
  setAgentStatus,
} from '@muster/protocol/http';
import { useNavigate } from '@tanstack/react-router';
import { screen, waitFor, within } from '@testing-library/react';
import { expect, onTestFinished, test } from 'vitest';
import { type FakeApi, fakeApi } from '../../../test/fake-api.ts';
import { renderPage } from '../../../test/render.tsx';
import { delayReadsUntil } from '../../api/client.ts';
import { markAgents } from '../../api/live/live-agents.ts';
import { queryClient } from '../../api/query-client.ts';
import { keys } from '../../api/query-keys.ts';
import { opensAddMachine } from '../enrollment/opens-add-machine.ts';
import { AgentsPage } from './agents-page.tsx';

const agents: readonly Agent[] = Array.from({ length: 150 }, (_, index) => ({
  ...agentExample,
  node_id: index.toString(16).padStart(32, '0'),
  name: `web-${String(index).padStart(3, '0')}`,
  connected: index !== 120,
}));

/** Starts an orchestrator that returns the first agents immediately, and all of them after `release` is called. */
function orchestrator(): { readonly api: FakeApi; readonly release: (all?: readonly Agent[]) => void } {
  const api = fakeApi();
  api.answerExamples(latestSamples, listReconcile, listTags);
  api.answer(matchSelector, { matches: [] });
  const all = Promise.withResolvers<Agent[]>();
  api.answer(listAgents, ({ query: { limit } }) =>
    limit === undefined ? all.promise : agents.slice(0, Number(limit)),
  );
  return { api, release: (list = agents) => all.resolve([...list]) };
}

const grid = () => screen.findByRole('grid', { name: 'Agents' });
const tab = (name: RegExp) => screen.getByRole('button', { name }).textContent;

/** Navigates to the agents page with a request to add a machine, as the palette does. */
function FromPalette() {
  const navigate = useNavigate();
  return (
    <>
      <button type="button" onClick={() => void navigate({ to: '.', state: opensAddMachine() })}>
        Palette
      </button>
      <AgentsPage />
    </>
  );
}

test.each([
  ['admin', true],
  ['operator', false],
] as const)('opens the dialog that adds a machine only for admins (%s: %s)', async (role, isOpened) => {
  const { api, release } = orchestrator();
  api.hold(createEnrolmentToken);
  release();
  const { user } = await renderPage(FromPalette, { role });
  await user.click(await screen.findByRole('button', { name: 'Palette' }));
  if (isOpened) expect(await screen.findByRole('dialog', { name: 'Add machine' })).toBeTruthy();
  else expect(screen.queryByRole('dialog')).toBeNull();
});

test('shows the first agents, and indicates that more are loading, until all agents are loaded', async () => {
  const { api, release } = orchestrator();
  await renderPage(AgentsPage);
  const table = await grid();
  expect(within(table).getByText('web-000')).toBeTruthy();
  expect(api.received(listAgents).map(({ query }) => query)).toEqual(
    expect.arrayContaining([{ sort: 'name', limit: '100' }, {}]),
  );
  expect(screen.getByText('Loading all agents…').getAttribute('role')).toBe('status');
  expect(table.getAttribute('aria-rowcount')).toBe('-1');
  expect([tab(/^All/), tab(/^Offline/)]).toEqual(['All', 'Offline']);
  release();
  expect(await screen.findByRole('button', { name: 'Offline 1' })).toBeTruthy();
  expect(table.getAttribute('aria-rowcount')).toBe('151');
  expect([tab(/^All/), tab(/^Offline/)]).toEqual(['All150', 'Offline1']);
});

test('shows the first agents before the event stream is open, and requests all agents after it', async () => {
  const { api, release } = orchestrator();
  const opening = Promise.withResolvers<void>();
  delayReadsUntil(opening.promise);
  onTestFinished(() => delayReadsUntil(Promise.resolve()));
  await renderPage(AgentsPage);
  expect(within(await grid()).getByText('web-000')).toBeTruthy();
  expect(api.received(listAgents).map(({ query }) => query)).toEqual([{ sort: 'name', limit: '100' }]);
  opening.resolve();
  release();
  expect(await screen.findByRole('button', { name: 'Offline 1' })).toBeTruthy();
  expect(api.received(listAgents).map(({ query }) => query)).toEqual([{ sort: 'name', limit: '100' }, {}]);
});

test('keeps the focus on a row when all agents have loaded', async () => {
  const { release } = orchestrator();
  const { user } = await renderPage(AgentsPage);
  const row = within(await grid())
    .getByText('web-000')
    .closest<HTMLElement>('[role=row]') as HTMLElement;
  row.focus();
  await user.keyboard('{ArrowDown} ');
  await waitFor(() => expect(document.activeElement?.textContent).toContain('web-001'));
  release();
  await screen.findByRole('button', { name: 'Offline 1' });
  expect(document.activeElement?.textContent).toContain('web-001');
  expect(screen.getByText('1 selected')).toBeTruthy();
});

test('reports that no agent matches only after all agents have loaded', async () => {
  const { release } = orchestrator();
  await renderPage(AgentsPage, { at: '/?status=offline' });
  await waitFor(() => expect(queryClient.getQueryData(keys.firstAgents('name'))).toHaveLength(100));
  expect(await screen.findByRole('status', { name: 'Loading agents' })).toBeTruthy();
  expect(screen.queryByText('No matching agents')).toBeNull();
  release(agents.filter(({ connected }) => connected));
  expect(await screen.findByText('No matching agents')).toBeTruthy();
});

test('finds an agent that is not among the first agents', async () => {
  const { release } = orchestrator();
  await renderPage(AgentsPage, { at: '/?status=offline' });
  release();
  expect(within(await grid()).getByText('web-120')).toBeTruthy();
});

test('accepts links from earlier releases, which use the word away for offline agents', async () => {
  const { release } = orchestrator();
  await renderPage(AgentsPage, { at: '/?status=away' });
  release();
  expect(within(await grid()).getByText('web-120')).toBeTruthy();
  expect(screen.getByRole('button', { name: 'Offline 1', pressed: true })).toBeTruthy();
});

test('requests only the complete list if the orchestrator does not support the sort order', async () => {
  const { api, release } = orchestrator();
  await renderPage(AgentsPage, { at: '/?sort=-state' });
  release();
  await grid();
  expect(api.received(listAgents).map(({ query }) => query)).toEqual([{}]);
});

test('shows a change that arrives while all agents load', async () => {
  const { api, release } = orchestrator();
  const [first] = agents as [Agent];
  api.answer(getAgent, { ...first, tags: { site: 'paris' } });
  await renderPage(AgentsPage);
  await grid();
  markAgents({ kind: 'agent', node_id: first.node_id, change: 'tags' });
  // Longer than the delay that batches changes (live/dirty-agents.ts).
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  expect(api.received(getAgent)).toEqual([]);
  // The orchestrator read the list before the change.
  release();
  await screen.findByRole('button', { name: 'Offline 1' });
  expect(await screen.findByTitle('site=paris')).toBeTruthy();
});

test('opens the menu of a row by keyboard, and tags the agent', async () => {
  const { release } = orchestrator();
  const { user } = await renderPage(AgentsPage);
  release();
  const row = within(await grid())
    .getByText('web-000')
    .closest<HTMLElement>('[role=row]') as HTMLElement;
  row.focus();
  for (const time of ['first', 'second']) {
    await user.keyboard('{Shift>}{F10}{/Shift}');
    const menu = await screen.findByRole('menu', { name: 'Actions on web-000' });
    const items = within(menu).getAllByRole('menuitem');
    expect(
      items.map(({ textContent }) => textContent),
      time,
    ).toEqual([...['Details', 'Plan', 'Apply…', 'Open terminal', 'Tag…', 'Reject…']]);
    await user.keyboard('{Escape}');
    await waitFor(() => expect(screen.queryByRole('menu')).toBeNull());
    row.focus();
  }
  await user.click(within(row).getByRole('button', { name: 'Actions on web-000' }));
  await user.click(await screen.findByRole('menuitem', { name: 'Tag…' }));
  expect(await screen.findByRole('dialog', { name: 'Tag 1 agent' })).toBeTruthy();
});

test('filters by words and by selector in one field, and accepts the selector parameter of older links', async () => {
  const { release } = orchestrator();
  const { user } = await renderPage(AgentsPage, { at: '/?filter=!legacy' });
  release(agents.map((agent, index) => ({ ...agent, tags: { site: index % 2 === 0 ? 'paris' : 'berlin' } })));
  const field = (await screen.findByRole('combobox', { name: 'Search' })) as HTMLInputElement;
  expect(field.value).toBe('!legacy');
  await screen.findByRole('button', { name: 'All 150' });
  await user.clear(field);
  await user.type(field, 'web-00 site=paris');
  await waitFor(() => expect(screen.getByRole('button', { name: 'All 5' })).toBeTruthy());
});

test('approves a pending agent from its row', async () => {
  const { api, release } = orchestrator();
  const [first] = agents as [Agent];
  const pending: Agent = {
    ...first,
    node_id: 'f'.repeat(32),
    name: null,
    status: 'pending',
    initial_hostname: 'new-1',
  };
  api.answer(setAgentStatus, { ...pending, status: 'approved', name: 'new-1' });
  const { user } = await renderPage(AgentsPage, { at: '/?status=pending' });
  release([...agents, pending]);
  await user.click(within(await grid()).getByRole('button', { name: 'Approve…' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'Approve this agent' }));
  await user.click(dialog.getByRole('button', { name: 'Approve' }));
  await waitFor(() =>
    expect(api.received(setAgentStatus)).toMatchObject([{ body: { status: 'approved', name: 'new-1' } }]),
  );
});

test('shows the sync state of each agent, and the usage only of connected agents', async () => {
  const { api, release } = orchestrator();
  const [synced, fresh, offline, drifted, pending] = agents.slice(0, 5) as [Agent, Agent, Agent, Agent, Agent];
  const [off] = listReconcile.example.answer as never as [OffAgent];
  api.answer(matchSelector, { matches: [fresh.node_id] });
  api.answer(listReconcile, [{ ...off, node_id: drifted.node_id, reasons: ['drifted'] }]);
  const sample = Object.values(latestSamples.example.answer as Record<string, Sample>)[0] as Sample;
  const usage = { ...sample, cpu_usage: 42, memory_used: null };
  api.answer(latestSamples, { [synced.node_id]: usage, [offline.node_id]: usage });
  await renderPage(AgentsPage);
  release([synced, fresh, { ...offline, connected: false }, drifted, { ...pending, status: 'pending' }]);
  const table = await grid();
  await within(table).findByText('never applied');
  const cells = (column: string) => {
    const headers = within(table).getAllByRole('columnheader');
    const at = headers.findIndex(({ textContent }) => textContent?.startsWith(column));
    return within(table)
      .getAllByRole('row')
      .slice(1)
      .map((row) => within(row).getAllByRole('gridcell')[at]?.textContent);
  };
  await waitFor(() => expect(cells('CPU')).toEqual(['42%', '–', '–', '–', '–']));
  expect(cells('Sync')).toEqual([
    'in sync',
    'never applied',
    'in sync',
    expect.stringContaining('drifted'),
    'Approve…',
  ]);
  const marks = ['in sync', 'never applied', 'drifted'].map(
    (word) => within(table).getAllByText(word)[0]?.previousElementSibling?.className,
  );
  expect(marks).toEqual(['bg-good', 'border-2', 'bg-warn-mark'].map((mark) => expect.stringContaining(mark)));
  expect(await screen.findByRole('button', { name: 'In sync 2' })).toBeTruthy();
  expect(api.received(matchSelector)[0]?.body).toEqual({ selector: '', never_applied: true });
});
