import { createEnrolmentToken, listAgents } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { HostAgent } from '../hosts/agent.ts';
import { noHosts } from '../hosts/test.ts';
import { TestHosts } from '../hosts/test-hosts.ts';
import { ShowcaseAgent } from '../showcase/agent.ts';
import { test as base, noBrowser } from './test.ts';

const reason = noBrowser() ?? noHosts();
const config = '/etc/muster/agent.yml';

/** One real machine, whose agent waits for approval until the first test gives it. */
const test = base.extend<{ $file: { web: HostAgent } }>({
  web: [
    async ({ orchestrator }, use) => {
      const hosts = await TestHosts.open();
      try {
        const files = { [config]: 'remote_terminal: { enabled: true, shell: /bin/bash }\n' };
        const machine = await hosts.start('web-1', { files });
        const { address } = hosts.bridge;
        const agent = { approved: false, tags: { role: 'web' }, flags: ['--config', config] };
        await use(await HostAgent.install(machine, orchestrator, address, agent));
      } finally {
        await hosts.end();
      }
    },
    { scope: 'file' },
  ],
});

describe.skipIf(reason !== null)(`with the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('an agent is approved, given a module and brought to it, by keys alone', async ({ tab, web, orchestrator }) => {
    const { page } = tab;
    await tab.signIn();
    await page.keyboard.type('ga');
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    await page.keyboard.press('/');
    const agents = page.getByRole('grid', { name: 'Agents' });
    await tab.press('Tab', agents.getByRole('row', { name: 'web-1' }));
    await page.keyboard.press('Space');
    await tab.press('Tab', page.getByRole('button', { name: 'Approve 1' }));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Approve this agent' });
    await tab.press('Tab', dialog.getByRole('button', { name: 'Approve' }));
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText('1 connected').waitFor();
    expect(await orchestrator.call(listAgents, { query: { status: 'approved' } })).toMatchObject([
      { node_id: web.nodeId, name: 'web-1' },
    ]);
  });

  test('fifty agents are approved at one time', async ({ tab, orchestrator }) => {
    const { page } = tab;
    const numbers = Array.from({ length: 50 }, (_, index) => index + 1);
    const agents = await Promise.all(
      numbers.map((number) =>
        ShowcaseAgent.create({ hostname: `kiosk-${number}`, attributes: { platform: 'linux', distro: 'alpine' } }),
      ),
    );
    await tab.signIn('/agents?status=pending&filter=role%3Dkiosk');
    await page.getByText('No agent is like that').waitFor();
    const body = { approve: false, uses: agents.length, tags: { role: 'kiosk' } };
    const { token } = await orchestrator.call(createEnrolmentToken, { body });
    for (const agent of agents) await agent.connect(orchestrator.agentPort, token);
    // They appear by themselves.
    await page.getByRole('button', { name: 'Pending 50' }).waitFor();
    await page.getByRole('checkbox', { name: 'Choose all' }).click();
    await page.getByRole('button', { name: 'Approve 50' }).click();
    const dialog = page.getByRole('dialog', { name: 'Approve 50 agents' });
    await dialog.getByRole('button', { name: 'Approve 50' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByText('50 agents approved').waitFor();
    const approved = await orchestrator.call(listAgents, { query: { status: 'approved', filter: 'role=kiosk' } });
    expect(approved.map(({ name }) => name).toSorted()).toEqual(numbers.map((number) => `kiosk-${number}`).toSorted());
    for (const agent of agents) agent.disconnect();
  });
});
