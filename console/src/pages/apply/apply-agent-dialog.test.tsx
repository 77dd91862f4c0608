import { applyAgent, getOperation, type Operation, planAgent } from '@muster/protocol/http';
import { screen, waitFor } from '@testing-library/react';
import { expect, test, vi } from 'vitest';
import { fakeApi } from '../../../test/fake-api.ts';
import { renderPart } from '../../../test/render.tsx';
import { ApplyAgentDialog } from './apply-agent-dialog.tsx';

const example = planAgent.example.answer as never as Operation;
const [resource] = example.resources as [Operation['resources'][number]];
const plan = (part: Partial<Operation> = {}): Operation => ({ ...example, ...part });
const summary = (part: Partial<Operation['summary']>) => ({ ...example.summary, changed: 0, ...part });
const removal = { ...resource, id: null, identity: '/etc/old', action: 'remove' as const };

async function open(planned: Operation, { connected = true }: { connected?: boolean } = {}) {
  const api = fakeApi();
  api.answer(planAgent, planned as never);
  api.answer(getOperation, planned as never);
  api.answer(applyAgent, plan({ operation_id: '01KAGZ4D3E5F6G7H8J9K0M1N2Q', kind: 'apply' }) as never);
  const onClose = vi.fn();
  const agent = { node_id: planned.node_id, connected };
  const rendered = await renderPart(<ApplyAgentDialog agent={agent} title="Apply to web-1" onClose={onClose} />);
  return { api, onClose, ...rendered };
}
const button = (name: string) => screen.getByRole('button', { name }) as HTMLButtonElement;
const checkbox = (name: string) => screen.getByRole('checkbox', { name }) as HTMLInputElement;

test('plans immediately and applies exactly the plan', async () => {
  const { api, user, address, onClose } = await open(plan());
  expect(await screen.findByText('1 to change, 0 to remove')).toBeTruthy();
  expect(api.received(planAgent)).toMatchObject([{ body: { modules: [] } }]);
  // The diff is collapsed.
  expect(screen.queryByText('Welcome')).toBeNull();
  await user.click(screen.getByRole('button', { name: /\/etc\/motd would update/ }));
  expect(screen.getByText('Welcome')).toBeTruthy();
  await user.click(button('Apply 1 change'));
  await waitFor(() => expect(address()).toBe('/operations/01KAGZ4D3E5F6G7H8J9K0M1N2Q'));
  expect(api.received(applyAgent)).toMatchObject([{ body: { plan_id: example.operation_id, offline: 'report' } }]);
  expect(onClose).toHaveBeenCalled();
});

test('shows the progress of the plan, and states that planning changes nothing', async () => {
  await open(plan({ status: 'running', finished_at: null, summary: summary({ total: 8 }), resources: [resource] }));
  expect((await screen.findByText(/Nothing is changed yet/)).textContent).toContain('1 of 8 resources compared.');
  expect(button('Apply').disabled).toBe(true);
});

test('removes resources only after a separate confirmation', async () => {
  const { api, user } = await open(
    plan({ summary: summary({ changed: 1, removed: 1, total: 2 }), resources: [resource, removal] }),
  );
  expect(await screen.findByText('1 to change, 1 to remove')).toBeTruthy();
  expect(screen.getByRole('list', { name: 'Resources to remove' }).textContent).toContain('/etc/old');
  expect(button('Apply 1 change, remove 1').disabled).toBe(true);
  await user.click(checkbox('Remove 1 resource'));
  await user.click(button('Apply 1 change, remove 1'));
  await waitFor(() => expect(api.received(applyAgent)).toHaveLength(1));
});

test('asks to confirm removals again if the apply is no longer bound to the plan', async () => {
  const { user } = await open(
    plan({ summary: summary({ changed: 1, removed: 1, total: 2 }), resources: [resource, removal] }),
  );
  await user.click(await screen.findByRole('checkbox', { name: 'Remove 1 resource' }));
  expect(button('Apply 1 change, remove 1').disabled).toBe(false);
  await user.click(checkbox('Apply exactly this plan'));
  expect(checkbox('Remove 1 resource').checked).toBe(false);
  expect(button('Apply 1 change, remove 1').disabled).toBe(true);
});

test('applies the current changes instead of the plan on request', async () => {
  const { api, user } = await open(plan());
  await user.click(await screen.findByRole('checkbox', { name: 'Apply exactly this plan' }));
  await user.click(button('Apply 1 change'));
  await waitFor(() => expect(api.received(applyAgent)).toHaveLength(1));
  expect(api.received(applyAgent)[0]?.body).not.toHaveProperty('plan_id');
});

test('offers to plan again if the plan is stale', async () => {
  const { api, user } = await open(plan());
  const planned_at = Date.now() / 1000 - 7_500;
  api.refuse(applyAgent, 'plan_stale', 'the secret token has changed since the plan', {
    planned_at: Math.floor(planned_at),
  });
  await user.click(await screen.findByRole('button', { name: 'Apply 1 change' }));
  expect(await screen.findByText('The plan is stale. Nothing was applied')).toBeTruthy();
  expect(screen.getByText('the secret token has changed since the plan')).toBeTruthy();
  expect(screen.getByText(/The plan was requested/).textContent).toBe('The plan was requested 2h ago.');
  expect(screen.queryByRole('button', { name: 'Apply 1 change' })).toBeNull();
  await user.click(button('Plan again'));
  expect(await screen.findByRole('button', { name: 'Apply 1 change' })).toBeTruthy();
  expect(api.received(planAgent)).toHaveLength(2);
});

test('applies without a plan only on request if planning failed', async () => {
  const { user } = await open(
    plan({ status: 'failed', error: 'nginx: no candidate', summary: summary({ failed: 1 }), resources: [] }),
  );
  expect((await screen.findByRole('alert')).textContent).toBe('nginx: no candidate');
  expect(screen.queryByRole('button', { name: /^Apply/ })).toBeNull();
  expect(button('Plan again')).toBeTruthy();
  await user.click(checkbox('Apply although there is no plan'));
  expect(button('Apply without a plan').disabled).toBe(false);
});

test('shows why the agent cannot be planned', async () => {
  const api = fakeApi();
  api.refuse(planAgent, 'module_conflict', 'motd and banner both declare /etc/motd');
  const agent = { node_id: example.node_id, connected: true };
  await renderPart(<ApplyAgentDialog agent={agent} title="Apply to web-1" onClose={() => {}} />);
  expect((await screen.findByRole('alert')).textContent).toContain('both declare /etc/motd');
  expect(button('Plan again')).toBeTruthy();
});

test('queues an apply for an agent that is offline', async () => {
  const { api, user, address } = await open(plan(), { connected: false });
  expect(screen.getByText(/The agent is offline/)).toBeTruthy();
  expect(button('Queue apply').disabled).toBe(true);
  await user.click(checkbox('Apply without a plan'));
  await user.click(button('Queue apply'));
  await waitFor(() => expect(address()).toMatch(/^\/operations\//));
  expect(api.received(planAgent)).toEqual([]);
  expect(api.received(applyAgent)).toMatchObject([{ body: { modules: [], offline: 'queue', ttl: 86_400 } }]);
});
