import { applyAgent, createAssignment, getState, uploadModule } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { ShowcaseAgent } from '../showcase/agent.ts';
import { test as base, noBrowser } from './test.ts';

const reason = noBrowser();

const fileModule = (name: string) =>
  JSON.stringify({
    name,
    supports: [{ platform: 'linux' }],
    resources: [{ resource: { 'file-unix': { path: `/srv/${name}`, content: `${name}\n`, mode: '0644' } } }],
  });

/**
 * The tests share the agents `app-1` and `app-2` on simulated machines. The module `wanted` is assigned to them.
 */
const test = base.extend<{ $file: { agents: readonly ShowcaseAgent[] } }>({
  agents: [
    async ({ orchestrator }, use) => {
      const { call } = orchestrator;
      for (const name of ['wanted', 'former']) await call(uploadModule, { body: { name, content: fileModule(name) } });
      const agents: ShowcaseAgent[] = [];
      for (const hostname of ['app-1', 'app-2']) {
        const agent = await ShowcaseAgent.create({ hostname, attributes: { platform: 'linux' } });
        await agent.connect(orchestrator.agentPort, await orchestrator.token(hostname, { role: 'app' }));
        agents.push(agent);
      }
      await call(createAssignment, { body: { name: 'apps', modules: ['wanted'], selector: 'role=app' } });
      await use(agents);
      for (const agent of agents) agent.disconnect();
    },
    { scope: 'file' },
  ],
});

describe.skipIf(reason !== null)(`applying in the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('plans when an operator applies to several agents, and then applies exactly the plan', async ({
    tab,
    agents,
  }) => {
    const { page } = tab;
    expect(agents).toHaveLength(2);
    await tab.signIn('/agents?filter=role%3Dapp');
    await page.getByRole('checkbox', { name: 'Select all' }).click();
    await page.getByRole('button', { name: 'Apply…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Apply to 2 agents' });
    await dialog.getByText('2 to change, 0 to remove').waitFor();
    await dialog.getByRole('button', { name: 'Apply 2 changes' }).click();
    await page.getByRole('heading', { level: 1, name: 'Apply on 2 agents' }).waitFor();
    await page.getByText('From plan').waitFor();
    await page.getByText('succeeded').first().waitFor();
  });

  test('removes resources from an agent only after a separate confirmation', async ({ tab, agents, orchestrator }) => {
    const { page } = tab;
    const params = { node_id: agents[0]?.nodeId as string };
    await orchestrator.call(applyAgent, { params, body: { modules: ['former'] } });
    await tab.signIn('/agents/app-1');
    await page.getByText('in sync').waitFor();
    await page.getByRole('button', { name: 'Apply…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Apply to app-1' });
    await dialog.getByText('0 to change, 1 to remove').waitFor();
    const remove = dialog.getByRole('button', { name: 'Remove 1 resource' });
    expect(await remove.isDisabled()).toBe(true);
    expect(await dialog.getByRole('list', { name: 'Resources to remove' }).innerText()).toContain('/srv/former');
    await dialog.getByRole('checkbox', { name: 'Remove 1 resource' }).check();
    await remove.click();
    await page.waitForURL(/\/operations\//);
    await page.getByText('1 removed').waitFor();
    const { applied } = await orchestrator.call(getState, { params });
    expect(applied.map(({ identity }) => identity)).toEqual(['/srv/wanted']);
  });

  test('shows a newly connected machine in the dialog and approves it there', async ({ tab, orchestrator }) => {
    const { page } = tab;
    await tab.signIn('/agents');
    await page.getByRole('button', { name: 'Add machine' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add machine' });
    await dialog.getByRole('button', { name: 'Options…' }).click();
    const options = page.getByRole('dialog', { name: 'New enrollment token' });
    await options.getByRole('checkbox', { name: 'Approve automatically' }).uncheck();
    await options.getByRole('button', { name: 'Create token' }).click();
    await dialog.getByText('Waiting for the machine to connect…').waitFor();
    const command = await dialog.locator('code').first().innerText();
    const token = /MUSTER_TOKEN=(\S+)/.exec(command)?.[1] as string;
    const agent = await ShowcaseAgent.create({ hostname: 'new-1', attributes: { platform: 'linux' } });
    await agent.connect(orchestrator.agentPort, token);
    await dialog.getByText('pending').waitFor();
    await dialog.getByRole('button', { name: 'Approve…' }).click();
    const approval = page.getByRole('dialog', { name: 'Approve this agent' });
    await approval.getByRole('button', { name: 'Approve' }).click();
    await dialog.getByText('No assignment matches these tags.').waitFor();
    await dialog.getByRole('link', { name: 'Open' }).click();
    await page.getByRole('heading', { level: 1, name: 'new-1' }).waitFor();
    agent.disconnect();
    await page.getByText('Offline. Last seen').waitFor();
    await page.getByRole('button', { name: 'Queue an apply…' }).waitFor();
  });
});
