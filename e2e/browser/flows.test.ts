import {
  applyAgent,
  createAssignment,
  createEnrolmentToken,
  listAgents,
  listRuns,
  uploadModule,
} from '@muster/protocol/http';
import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { HostAgent } from '../hosts/agent.ts';
import { noHosts } from '../hosts/test.ts';
import { TestHosts } from '../hosts/test-hosts.ts';
import { ShowcaseAgent } from '../showcase/agent.ts';
import { Tab } from './tab.ts';
import { test as base, noBrowser } from './test.ts';

const reason = noBrowser() ?? noHosts();
const config = '/etc/muster/agent.yml';

const greeting = (text: string) =>
  JSON.stringify({
    name: 'greeting',
    supports: [{ platform: 'linux' }],
    resources: [{ resource: { 'file-unix': { path: '/srv/greeting', content: `${text}\n`, mode: '0644' } } }],
  });

/** Opens a page, whose content then has the focus. */
async function goByKeys({ page }: Tab, key: string, heading: string): Promise<void> {
  await page.keyboard.press('Escape');
  await page.keyboard.type(`g${key}`);
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
}

/** Waits until the shell has printed its number of columns. Returns the latest number. */
const columnsOn = (screen: Locator): Promise<number> =>
  eventually('the shell has printed its number of columns', async () => {
    const [, columns] = [...(await screen.innerText()).matchAll(/cols (\d+)/g)].at(-1) ?? [];
    return columns === undefined ? null : Number(columns);
  });

/** The tests share one real machine. The first test approves its agent. */
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

describe.skipIf(reason !== null)(`the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('the console approves an agent and applies a module by keyboard alone', async ({ tab, web, orchestrator }) => {
    const { page } = tab;
    await tab.signIn();
    await page.keyboard.type('ga');
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    await page.keyboard.press('/');
    const agents = page.getByRole('grid', { name: 'Agents' });
    await tab.press('Tab', agents.getByRole('row', { name: 'web-1' }));
    await page.keyboard.press('Space');
    await tab.press('Tab', page.getByRole('button', { name: 'Approve 1' }), 60);
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Approve this agent' });
    await tab.press('Tab', dialog.getByRole('button', { name: 'Approve' }));
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Connected 1' }).waitFor();
    expect(await orchestrator.call(listAgents, { query: { status: 'approved' } })).toMatchObject([
      { node_id: web.nodeId, name: 'web-1' },
    ]);

    await goByKeys(tab, 'm', 'Modules');
    await tab.press('Tab', page.getByRole('link', { name: 'New module' }).first());
    await page.keyboard.press('Enter');
    await tab.press('Tab', page.getByRole('textbox', { name: 'Text of the new module' }), 60);
    await page.keyboard.insertText(greeting('hello'));
    await page.keyboard.press('Control+s');
    await page.getByRole('heading', { level: 1, name: 'greeting' }).waitFor();

    await goByKeys(tab, 's', 'Assignments');
    await tab.press('Tab', page.getByRole('link', { name: 'New assignment' }).first());
    await page.keyboard.press('Enter');
    await tab.press('Tab', page.getByRole('textbox', { name: 'Name' }), 60);
    await page.keyboard.type('web');
    await tab.press('Tab', page.getByRole('combobox', { name: 'Add a module' }));
    await page.keyboard.type('gree');
    await page.getByRole('option', { name: 'greeting' }).waitFor();
    await page.keyboard.press('Enter');
    await tab.press('Tab', page.getByRole('combobox', { name: 'Selector' }));
    await page.keyboard.type('role=web ');
    await page.getByText('Matches 1 agent').waitFor();
    await tab.press('Tab', page.getByRole('button', { name: 'Create assignment' }));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'web' }).waitFor();

    await tab.press('Shift+Tab', page.getByRole('button', { name: 'Plan' }), 80);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Plan of web' }).waitFor();
    await tab.press('Shift+Tab', page.getByRole('button', { name: 'Apply this plan…' }), 80);
    expect(await web.machine.sh('ls /srv')).toBe('');
    await page.keyboard.press('Enter');
    const approval = page.getByRole('dialog', { name: 'Apply this plan' });
    await tab.press('Tab', approval.getByRole('button', { name: 'Apply 1 change' }));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Apply of web' }).waitFor();
    await page.getByText('succeeded').first().waitFor();
    expect(await web.machine.sh('cat /srv/greeting')).toBe('hello\n');
  });

  test('the console shows a manual change without a reload, and repairs it', async ({ tab, web }) => {
    const { page } = tab;
    await tab.signIn('/out-of-sync');
    await page.getByText('Everything is in sync').waitFor();
    await web.machine.sh('echo kilroy was here >> /srv/greeting');
    const off = page.getByRole('grid', { name: 'Out of sync' });
    await off.getByText('/srv/greeting: content differs').waitFor();
    await off.getByRole('button', { name: 'web-1', exact: true }).click();
    await off.getByText('kilroy was here').waitFor();
    await off.getByRole('button', { name: 'Apply… web-1' }).click();
    const repairing = page.getByRole('dialog', { name: 'Apply to web-1' });
    await repairing.getByText('1 to change, 0 to remove').waitFor();
    await repairing.getByRole('button', { name: 'Apply 1 change' }).click();
    await page.waitForURL(/\/operations\//);
    await page.getByText('succeeded').first().waitFor();
    expect(await web.machine.sh('cat /srv/greeting')).toBe('hello\n');
    await tab.go('/out-of-sync');
    await page.getByText('Everything is in sync').waitFor();

    // An agent with accepted drift is in sync.
    await web.machine.sh('chmod 600 /srv/greeting');
    await page.getByRole('button', { name: 'Actions on web-1' }).click();
    await page.getByRole('menuitem', { name: 'Accept…' }).click();
    const accepting = page.getByRole('dialog');
    await accepting.getByRole('textbox').first().fill('until monday');
    await accepting.getByRole('button', { name: /^Accept/ }).click();
    await page.getByText('Everything is in sync').waitFor();
    await page.getByRole('tab', { name: 'Accepted' }).click();
    await off.getByText('/srv/greeting: mode 0600, expected 0644').waitFor();
  });

  test('the console opens a terminal by keyboard, reattaches it after a reload, lets others watch, and replays it', async ({
    tab,
    web,
    orchestrator,
    browser,
  }) => {
    const { page } = tab;
    const screen = (of: Page) => of.locator('.xterm-rows');
    await tab.signIn('/terminals/new/web-1');
    await tab.press('Tab', page.getByRole('button', { name: 'Open terminal' }), 60);
    await page.keyboard.press('Enter');
    await page.getByText('In control').waitFor();
    await page.keyboard.type('PS1=; echo $((6 * 7)) is the answer\n');
    await screen(page).getByText('42 is the answer').waitFor();
    await page.keyboard.type('echo cols $(tput cols)\n');
    const wide = await columnsOn(screen(page));
    await page.setViewportSize({ width: 800, height: 700 });
    await eventually('the shell has the new number of columns', async () => {
      await page.keyboard.type('clear; echo cols $(tput cols)\n');
      return (await columnsOn(screen(page))) < wide ? true : null;
    });

    // Another operator watches in another browser.
    const session = new URL(page.url()).pathname;
    const other = await Tab.open(browser, orchestrator);
    await other.signIn(session);
    await other.page
      .getByText('Watching')
      .or(other.page.getByRole('button', { name: 'Watch' }))
      .first()
      .waitFor();
    const watch = other.page.getByRole('button', { name: 'Watch' });
    if (await watch.isVisible()) await watch.click();
    await other.page.getByText('Watching').waitFor();
    await page.locator('.xterm-helper-textarea').focus();
    await page.keyboard.type('echo seen by both\n');
    await screen(other.page).getByText('seen by both').first().waitFor();
    // Tab moves the focus out of a viewer's screen. The controller uses the shortcut that the page describes.
    const focused = (of: Page) => of.evaluate('document.activeElement.className');
    await other.page.locator('.xterm-helper-textarea').focus();
    await other.page.keyboard.press('Shift+Tab');
    expect(await focused(other.page)).not.toContain('xterm');
    await page.keyboard.press('Shift+Tab');
    expect(await focused(page)).toContain('xterm');
    expect(await page.locator('.xterm-helper-textarea').getAttribute('aria-describedby')).not.toBe(null);
    await page.getByText('leaves the terminal').waitFor();
    await page.keyboard.press('Control+Shift+L');
    expect(await focused(page)).not.toContain('xterm');
    await page.locator('.xterm-helper-textarea').focus();
    // A narrow window, such as on a phone, shows the connected operators too.
    const watcher = await Tab.open(browser, orchestrator, { viewport: { width: 390, height: 800 } });
    await watcher.signIn('/terminals');
    await watcher.page.getByRole('row', { name: 'web-1' }).getByText('ada, ada').first().waitFor();
    await watcher.close();
    await other.close();

    await page.keyboard.type('marker=still-there\n');
    // A page that is left may lose input that it has not sent.
    await screen(page).getByText('marker=still-there').first().waitFor();
    await page.goto('about:blank');
    await page.goto(`${orchestrator.url}${session}`);
    await page
      .getByText('In control')
      .or(page.getByRole('button', { name: 'Take control' }))
      .first()
      .waitFor();
    const take = page.getByRole('button', { name: 'Take control' });
    if (await take.isVisible()) await take.click();
    await page.getByText('In control').waitFor();
    await page.locator('.xterm-helper-textarea').focus();
    await page.keyboard.type('echo $marker\n');
    await screen(page).getByText('still-there').first().waitFor();
    await page.keyboard.type('exit\n');

    await page.getByRole('button', { name: 'Replay' }).click();
    const search = page.getByPlaceholder('Search the recording');
    await search.fill('is the answer');
    await page
      .getByRole('region', { name: 'Search results' })
      .getByRole('button')
      .filter({ hasText: '42' })
      .first()
      .click();
    await screen(page).getByText('42 is the answer').first().waitFor();
    // The page's shortcuts work while the screen has the focus, and Tab moves the focus out of it.
    const slider = page.getByRole('slider', { name: 'Position in the recording' });
    await page.locator('.xterm-helper-textarea').focus();
    await page.keyboard.press('Home');
    await eventually('the replay is at its start', async () => ((await slider.inputValue()) === '0' ? true : null));
    await tab.press('Tab', slider);
    await page.keyboard.press('End');
    const max = Number(await slider.getAttribute('max'));
    await expect.poll(async () => Number(await slider.inputValue())).toBeCloseTo(max, 5);
    expect(await web.machine.sh('pgrep -xc bash || true')).toBe('0\n');
  });

  test('the console shows a run that a failed canary halted, and retries the failed agents', async ({
    tab,
    orchestrator,
  }) => {
    const { page } = tab;
    const agents = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        ShowcaseAgent.create({ hostname: `db-${index + 1}`, attributes: { platform: 'linux' } }),
      ),
    );
    for (const agent of agents)
      await agent.connect(orchestrator.agentPort, await orchestrator.token(agent.description.hostname, { role: 'db' }));
    for (const agent of agents) agent.machine.fault('/srv/greeting', 'no space left on device');
    const { call } = orchestrator;
    await call(createAssignment, { body: { name: 'databases', modules: ['greeting'], selector: 'role=db' } });
    await tab.signIn('/assignments/databases');
    await page.getByRole('button', { name: 'Apply…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Apply databases to 6 agents' });
    await dialog.getByText('6 to change, 0 to remove').waitFor();
    await dialog.getByRole('heading', { name: /^6 agents/ }).waitFor();
    await dialog.getByRole('button', { name: 'Apply 6 changes' }).click();
    await page.getByText('Run halted').waitFor();
    await page.getByText('no space left on device').first().waitFor();
    const [run] = await call(listRuns, { query: { assignment: 'databases' } });
    expect(run).toMatchObject({ status: 'halted' });
    for (const agent of agents) agent.machine.fault('/srv/greeting', null);
    await page.getByRole('button', { name: 'Retry failed agents' }).click();
    const retry = page.getByRole('dialog', { name: 'Retry failed agents' });
    await retry.getByRole('checkbox', { name: 'Include the 5' }).check();
    await retry.getByRole('button', { name: 'Apply 6 changes' }).click();
    await eventually('the second run has succeeded', async () => {
      const runs = await call(listRuns, {});
      return runs[0]?.run_id !== run?.run_id && runs[0]?.status === 'succeeded' ? true : null;
    });
    await page.getByText('succeeded').first().waitFor();
    for (const agent of agents) agent.disconnect();
  });

  test('the console approves fifty agents together', async ({ tab, orchestrator }) => {
    const { page } = tab;
    const numbers = Array.from({ length: 50 }, (_, index) => index + 1);
    const agents = await Promise.all(
      numbers.map((number) =>
        ShowcaseAgent.create({ hostname: `kiosk-${number}`, attributes: { platform: 'linux', distro: 'alpine' } }),
      ),
    );
    await tab.signIn('/agents?status=pending&filter=role%3Dkiosk');
    await page.getByText('No matching agents').waitFor();
    const body = { approve: false, uses: agents.length, tags: { role: 'kiosk' } };
    const { token } = await orchestrator.call(createEnrolmentToken, { body });
    for (const agent of agents) await agent.connect(orchestrator.agentPort, token);
    await page.getByRole('button', { name: 'Pending 50' }).waitFor();
    await page.getByRole('checkbox', { name: 'Select all' }).click();
    await page.getByRole('button', { name: 'Approve 50' }).click();
    const dialog = page.getByRole('dialog', { name: 'Approve agents' });
    await dialog.getByRole('button', { name: 'Approve 50' }).click();
    await dialog.waitFor({ state: 'hidden' });
    const approved = await orchestrator.call(listAgents, { query: { status: 'approved', filter: 'role=kiosk' } });
    expect(approved.map(({ name }) => name).toSorted()).toEqual(numbers.map((number) => `kiosk-${number}`).toSorted());
    for (const agent of agents) agent.disconnect();
  });

  test('the console shows hostile text from an agent as plain text', async ({ tab, orchestrator }) => {
    const { page } = tab;
    const { call } = orchestrator;
    const evil = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>\u202egnp.exe\u001b[2J\u0007';
    const agent = await ShowcaseAgent.create({
      hostname: evil + 'x'.repeat(255 - evil.length),
      attributes: { platform: 'linux', distro: evil, [`${evil.slice(0, 40)}`]: evil.repeat(8) },
    });
    const endless = await ShowcaseAgent.create({ hostname: 'y'.repeat(64 * 1024), attributes: {} });
    // The orchestrator refuses a hostname of 64 KiB.
    await expect(endless.connect(orchestrator.agentPort, await orchestrator.token(null))).rejects.toThrow(
      /the link ended/,
    );
    await agent.connect(
      orchestrator.agentPort,
      await orchestrator.token('evil', { role: '<b>"evil"</b>', note: "'><i>" }),
    );
    const content = JSON.stringify({
      name: 'evil',
      supports: [{ platform: 'linux' }],
      resources: [{ resource: { 'file-unix': { path: '/srv/<b>x</b>', content: `${evil}\n`, mode: '0644' } } }],
    });
    await call(uploadModule, { body: { name: 'evil', content } });
    const params = { node_id: agent.nodeId };
    await call(applyAgent, { params, body: { modules: ['evil'] } });
    agent.machine.fault('/srv/<b>x</b>', evil);
    agent.tamper('/srv/<b>x</b>', { content: `${evil}${evil}\n` });
    const failed = await call(applyAgent, { params, body: { modules: ['evil'] } });
    expect(failed).toMatchObject({ status: 'failed', error: expect.stringContaining('<img') });
    const faults: string[] = [];
    await tab.signIn('/agents');
    for (const path of [
      '/agents',
      '/agents/evil',
      `/operations/${failed.operation_id}`,
      '/operations',
      '/out-of-sync',
      '/out-of-sync?tab=checks',
      '/audit',
      '/notifications',
      '/',
    ]) {
      await tab.go(path);
      await tab.settled();
      const seen = (await page.evaluate(`({
        ran: window.ran ?? 0,
        elements: document.querySelectorAll('#content img, #content script, #content b, #content i').length,
        raw: /[\\u202e\\u001b\\u0007]/.test(document.body.innerText),
        wide: document.documentElement.scrollWidth > innerWidth,
      })`)) as object;
      if (JSON.stringify(seen) !== '{"ran":0,"elements":0,"raw":false,"wide":false}')
        faults.push(`${path}: ${JSON.stringify(seen)}`);
    }
    expect(faults).toEqual([]);
    agent.disconnect();
  });
});
