import { cancelRun, getOperation, getRun, planAgent, type Run, startRun } from '@muster/protocol/http';
import { act, screen, waitFor, within } from '@testing-library/react';
import { useState } from 'react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { queryClient } from '../../api/query-client.ts';
import { keys } from '../../api/query-keys.ts';
import { Checkbox } from '../../parts/form/field.tsx';
import { ApplyRunDialog } from './apply-run-dialog.tsx';

const example = startRun.example.answer as never as Run;
const [result] = example.results as [Run['results'][number]];
const none = { total: 3, unchanged: 3, changed: 0, removed: 0, failed: 0, skipped: 0 };

interface Planned {
  readonly status?: Run['results'][number]['status'];
  readonly changed?: number;
  readonly removed?: number;
}
const planRun = (agents: readonly Planned[], part: Partial<Run> = {}): Run => ({
  ...{ ...example, kind: 'plan', run_id: 'PLAN' },
  results: agents.map(({ status = 'succeeded', changed = 0, removed = 0 }, index) => ({
    ...{ ...result, status, node_id: `${index}`.repeat(32), name: `web-${index}` },
    summary: { ...none, changed, removed },
  })),
  ...part,
});

/** Opens the dialog for the agents of one plan, or of several plans that each need their own run. */
async function open(...plans: readonly [Run, ...Run[]]) {
  const api = fakeApi();
  const nodeIds = ({ results }: Run) => results.map(({ node_id }) => node_id);
  const planOf = (asked: readonly string[]) => plans.find((plan) => nodeIds(plan)[0] === asked[0]) ?? plans[0];
  api.answer(startRun, (({ body }: { body: { kind: string; node_ids: string[] } }) =>
    body.kind === 'plan' ? planOf(body.node_ids) : { ...example, run_id: 'APPLY' }) as never);
  api.answer(getRun, (({ params }: { params: { run_id: string } }) =>
    plans.find(({ run_id }) => run_id === params.run_id)) as never);
  api.answer(getOperation, planAgent.example.answer as never);
  const onClose = vi.fn();
  const rendered = await renderPart(
    <ApplyRunDialog
      title="Apply to agents"
      loadSubjects={async () => plans.map((plan) => ({ kind: 'agents', node_ids: nodeIds(plan), modules: [] }))}
      onClose={onClose}
    />,
  );
  return { api, onClose, ...rendered };
}
const button = (name: string) => screen.getByRole('button', { name }) as HTMLButtonElement;
const field = (name: string) => screen.getByRole('textbox', { name });
const applied = (api: ReturnType<typeof fakeApi>) =>
  api.received(startRun).filter(({ body }) => (body as { kind: string }).kind === 'apply');

test('plans immediately and starts a run with a canary and batches that applies exactly the plan', async () => {
  const { api, user, address } = await open(planRun([{ changed: 2 }, { changed: 1 }, {}]));
  expect(await screen.findByText('3 to change, 0 to remove')).toBeTruthy();
  expect(screen.getByText(/on 2 agents/).textContent).toContain('1 already matches');
  expect(screen.getByText(/^Runs on 1 agent first/).closest('footer')).toBeTruthy();
  await user.click(button('Apply 3 changes'));
  await waitFor(() => expect(address()).toBe('/runs/APPLY'));
  expect(applied(api)).toMatchObject([
    { body: { plan_run_id: 'PLAN', canary: 1, batch: '25%', max_failures: 0, offline: 'report' } },
  ]);
});

test('shows the changes by module immediately, with collapsed diffs', async () => {
  await open(planRun([{ changed: 1 }, { changed: 1 }]));
  const row = await screen.findByRole('button', { name: /\/etc\/motd would update/ });
  expect(row.getAttribute('aria-expanded')).toBe('false');
  expect(screen.getByRole('heading', { name: /^2 agents/ })).toBeTruthy();
  expect(screen.getByRole('heading', { name: /^motd/ })).toBeTruthy();
});

/** A plan for one agent, which changes one resource. */
const planOfAgent = (run_id: string, node_id: string): Run =>
  planRun([{}], {
    run_id,
    results: [{ ...result, status: 'succeeded', node_id: node_id.repeat(32), summary: { ...none, changed: 1 } }],
  });

test('describes each run if several start at the same time', async () => {
  const { api, user, address } = await open(planRun([{ changed: 1 }, { changed: 1 }]), planOfAgent('SECOND', 'a'));
  expect(await screen.findByText(/^Starts 2 runs at the same time\./)).toBeTruthy();
  expect(screen.getByText(/^One run with 2 agents: Runs on 1 agent first/)).toBeTruthy();
  expect(screen.getByText(/^One run with 1 agent: Runs on 1 agent at once/)).toBeTruthy();
  await user.click(button('Apply 3 changes'));
  await waitFor(() => expect(address()).toBe('/runs'));
  expect(applied(api).map(({ body }) => body)).toMatchObject([{ plan_run_id: 'PLAN' }, { plan_run_id: 'SECOND' }]);
});

test('does not start earlier runs again if a later one is refused', async () => {
  const { api, user, address } = await open(planRun([{ changed: 1 }, { changed: 1 }]), planOfAgent('SECOND', 'a'));
  await user.click(
    await screen.findByRole('button', { name: 'Apply 3 changes' }).then((apply) => {
      api.answer(startRun, (() => {
        api.refuse(startRun, 'rate_limited');
        return { ...example, run_id: 'APPLY' };
      }) as never);
      return apply;
    }),
  );
  expect(await screen.findByText('Only 1 run started')).toBeTruthy();
  expect(screen.getAllByRole('link')[0]?.getAttribute('href')).toBe('/runs/APPLY');
  api.answer(startRun, { ...example, run_id: 'APPLY2' } as never);
  await user.click(button('Apply 1 change'));
  await waitFor(() => expect(address()).toBe('/runs'));
  expect(applied(api).map(({ body }) => (body as { plan_run_id: string }).plan_run_id)).toEqual([
    'PLAN',
    'SECOND',
    'SECOND',
  ]);
});

test('shows the progress of the plan, and cancels it if the dialog closes', async () => {
  const plan = planRun([{ changed: 1 }, { status: 'running' }], { status: 'running', finished_at: null });
  const { api, user, onClose } = await open(plan);
  api.answer(cancelRun, plan as never);
  expect(await screen.findByText(/1 of 2 agents planned/)).toBeTruthy();
  expect(button('Apply').disabled).toBe(true);
  await user.click(button('Cancel'));
  expect(onClose).toHaveBeenCalled();
  await waitFor(() => expect(api.received(cancelRun)).toHaveLength(1));
});

test('lists the agents that are not planned yet, and why planning failed on others', async () => {
  const plan = planRun([{ changed: 1 }, { status: 'running' }, { status: 'failed' }, { status: 'queued' }], {
    ...{ status: 'running', finished_at: null },
  });
  const results = plan.results.map((each) =>
    each.status === 'failed' ? { ...each, error: 'the disk is full' } : each,
  );
  await open({ ...plan, results });
  expect(await screen.findByText(/2 of 4 agents planned, 1 failed/)).toBeTruthy();
  const bar = screen.getByRole('progressbar', { name: 'Planned agents' }) as HTMLProgressElement;
  expect([bar.value, bar.max]).toEqual([2, 4]);
  const unplanned = within(screen.getByRole('list', { name: 'Agents without a plan' })).getAllByRole('listitem');
  expect(unplanned.map(({ textContent }) => textContent)).toEqual([
    'web-2planning failedthe disk is full',
    'web-1planning',
    'web-3waiting',
  ]);
});

test('states that it waits for the plan once all agents are planned, and offers to apply when the plan is complete', async () => {
  const plan = planRun([{ changed: 1 }, {}], { status: 'running', finished_at: null });
  const { api } = await open(plan);
  expect(await screen.findByText(/Waiting for the orchestrator to complete the plan/)).toBeTruthy();
  expect(button('Apply').disabled).toBe(true);
  api.answer(getRun, { ...plan, status: 'succeeded', finished_at: example.finished_at } as never);
  await act(() => queryClient.invalidateQueries({ queryKey: keys.run('PLAN') }));
  expect(((await screen.findByRole('button', { name: 'Apply 1 change' })) as HTMLButtonElement).disabled).toBe(false);
});

test('removes resources only after a separate confirmation', async () => {
  const { user } = await open(planRun([{ changed: 2, removed: 1 }, { removed: 3 }]));
  const apply = await screen.findByRole('button', { name: 'Apply 2 changes, remove 4' });
  expect((apply as HTMLButtonElement).disabled).toBe(true);
  expect(apply.className).toContain('bg-bad');
  await user.click(screen.getByRole('checkbox', { name: 'Remove 4 resources from 2 agents' }));
  expect((apply as HTMLButtonElement).disabled).toBe(false);
});

test('asks to confirm removals again if agents with removals are added', async () => {
  const plan = planRun([{ removed: 1 }, { removed: 2 }]);
  const api = fakeApi();
  api.answer(startRun, plan as never);
  api.answer(getRun, plan as never);
  api.answer(getOperation, planAgent.example.answer as never);
  const node_ids = plan.results.map(({ node_id }) => node_id);
  function Retry() {
    const [isAll, setAll] = useState(false);
    return (
      <ApplyRunDialog
        title="Retry failed agents"
        loadSubjects={async () => [{ kind: 'agents', node_ids, modules: [] }]}
        choice={{
          field: <Checkbox label="All" checked={isAll} onChange={() => setAll(!isAll)} />,
          includes: ({ node_id }) => isAll || node_id === node_ids[0],
        }}
        onClose={() => {}}
      />
    );
  }
  const { user } = await renderPart(<Retry />);
  await user.click(await screen.findByRole('checkbox', { name: 'Remove 1 resource' }));
  expect(button('Remove 1 resource').disabled).toBe(false);
  await user.click(screen.getByRole('checkbox', { name: 'All' }));
  expect(button('Remove 3 resources').disabled).toBe(true);
  await user.click(screen.getByRole('checkbox', { name: 'All' }));
  expect(button('Remove 1 resource').disabled).toBe(false);
});

test('skips agents without a plan, unless the plan is not binding', async () => {
  const { api, user } = await open(planRun([{ changed: 1 }, { changed: 1 }, { status: 'failed' }]));
  expect(await screen.findByText(/^1 agent has no plan/)).toBeTruthy();
  await user.click(button('Apply 2 changes'));
  await waitFor(() => expect(applied(api)).toHaveLength(1));
  expect(applied(api)[0]?.body).toMatchObject({ node_ids: [expect.anything(), expect.anything()] });
});

test('asks how long to wait only if the run waits for disconnected agents', async () => {
  const { api, user } = await open(planRun([{ changed: 1 }, { changed: 1 }, { status: 'failed' }]));
  expect(await screen.findByText(/^1 agent has no plan/)).toBeTruthy();
  expect(screen.queryByRole('combobox')).toBeNull();
  await user.click(screen.getByRole('checkbox', { name: 'Apply exactly this plan' }));
  expect(screen.queryByRole('textbox', { name: 'Wait up to' })).toBeNull();
  await user.selectOptions(screen.getByRole('combobox'), 'queue');
  expect(field('Wait up to')).toBeTruthy();
  await user.click(button('Apply 2 changes'));
  await waitFor(() => expect(applied(api)).toHaveLength(1));
  const body = applied(api)[0]?.body as { node_ids: string[] };
  expect(body).toMatchObject({ offline: 'queue', ttl: 86_400 });
  expect(body).not.toHaveProperty('plan_run_id');
  expect(body.node_ids).toHaveLength(3);
});

test('shows the error for an invalid option only after an attempt to start', async () => {
  const { api, user } = await open(planRun([{ changed: 1 }, { changed: 1 }]));
  await screen.findByText('2 to change, 0 to remove');
  await user.clear(field('At a time'));
  await user.type(field('At a time'), 'half');
  expect(screen.getByText('Correct the options above.')).toBeTruthy();
  expect(screen.queryByText(/^Enter a number of agents/)).toBeNull();
  await user.click(button('Apply 2 changes'));
  expect(screen.getByText(/^Enter a number of agents/)).toBeTruthy();
  expect(applied(api)).toEqual([]);
});

test('does not ask for a canary or batches for a single agent', async () => {
  const { api, user } = await open(planRun([{ changed: 1 }]));
  await screen.findByText('1 to change, 0 to remove');
  expect(screen.queryByRole('textbox', { name: 'Canary' })).toBeNull();
  await user.click(button('Apply 1 change'));
  await waitFor(() => expect(applied(api)).toHaveLength(1));
  expect(applied(api)[0]?.body).not.toHaveProperty('canary');
});

test('offers to plan again if the plan was deleted', async () => {
  const plan = planRun([{ changed: 1 }]);
  const { api, user } = await open(plan);
  await screen.findByText('1 to change, 0 to remove');
  api.refuse(startRun, 'run_not_found');
  await user.click(button('Apply 1 change'));
  expect(await screen.findByText('The plan was deleted. Nothing was applied')).toBeTruthy();
  api.answer(startRun, plan as never);
  await user.click(button('Plan again'));
  expect(await screen.findByRole('button', { name: 'Apply 1 change' })).toBeTruthy();
});

test('does not plan agents again after their run has started', async () => {
  const second = planOfAgent('SECOND', 'a');
  const { api, user } = await open(planRun([{ changed: 1 }, { changed: 1 }]), second);
  await screen.findByRole('button', { name: 'Apply 3 changes' });
  api.answer(startRun, (() => {
    api.refuse(startRun, 'run_not_found');
    return { ...example, run_id: 'APPLY' };
  }) as never);
  await user.click(button('Apply 3 changes'));
  expect(await screen.findByText('The plan was deleted. Nothing else was applied')).toBeTruthy();
  api.answer(startRun, second as never);
  await user.click(button('Plan again'));
  expect(await screen.findByRole('button', { name: 'Apply 1 change' })).toBeTruthy();
  const planned = api.received(startRun).filter(({ body }) => (body as { kind: string }).kind === 'plan');
  expect(planned.map(({ body }) => (body as { node_ids: string[] }).node_ids.length)).toEqual([2, 1, 1]);
});

test('does not offer to start a run again if the response was lost', async () => {
  const { api, user } = await open(planRun([{ changed: 1 }]));
  await screen.findByText('1 to change, 0 to remove');
  api.refuse(startRun, 'outcome_unknown');
  await user.click(button('Apply 1 change'));
  expect(await screen.findByText('The run may have started')).toBeTruthy();
  expect(screen.getByRole('link', { name: 'runs' }).getAttribute('href')).toBe('/runs');
  expect(screen.queryByRole('button', { name: /^Apply/ })).toBeNull();
  expect(button('Plan again')).toBeTruthy();
});

test('cancels the plans whose requests are pending when the dialog closes', async () => {
  const running = { status: 'running', finished_at: null } as const;
  const first = planRun([{ changed: 1 }], running);
  const api = fakeApi();
  const { promise, resolve } = Promise.withResolvers<Run>();
  api.answer(startRun, (() => promise) as never);
  api.answer(cancelRun, first as never);
  // The page fetches a started run again.
  api.answer(getRun, first as never);
  const loadSubjects = async () =>
    ['a', 'b'].map((id) => ({ kind: 'agents' as const, node_ids: [id.repeat(32)], modules: [] }));
  const { user } = await renderPart(<ApplyRunDialog title="Apply" loadSubjects={loadSubjects} onClose={() => {}} />);
  await waitFor(() => expect(api.received(startRun)).toHaveLength(1));
  await user.click(button('Cancel'));
  resolve(first);
  await waitFor(() => expect(api.received(cancelRun)).toMatchObject([{ params: { run_id: 'PLAN' } }]));
  expect(api.received(startRun)).toHaveLength(1);
});
