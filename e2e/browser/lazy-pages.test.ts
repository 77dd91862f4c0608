import { describe, expect } from 'vitest';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

describe.skipIf(reason !== null)(`a page whose code is not loaded${reason === null ? '' : ` (${reason})`}`, () => {
  test('opens a page as soon as the orchestrator responds, without a reload', async ({ tab }) => {
    const { page } = tab;
    tab.watch.expects(/settings-page|healthz|ERR_FAILED/);
    // Simulates a restart of the orchestrator for this page.
    await page.route('**/settings-page*', (route) => route.abort());
    await page.route('**/healthz', (route) => route.abort());
    await tab.signIn('/modules/new');
    await page.evaluate("document.body.dataset.loaded = 'once'");
    // During the first 5 seconds, the console assumes that the orchestrator, which has just sent the page, responds.
    await page.evaluate('new Promise((resolve) => setTimeout(resolve, 5_001 - performance.now()))');
    await tab.go('/settings');
    await page.getByText('This page is not loaded yet').waitFor();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    await page.unroute('**/settings-page*');
    await page.unroute('**/healthz');
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    expect(await page.evaluate('document.body.dataset.loaded')).toBe('once');
  });

  test('asks before reloading if the orchestrator has a different version', async ({ tab }) => {
    const { page } = tab;
    tab.watch.expects(/settings-page|404/);
    let isReloaded = false;
    await page.route('**/settings-page*', (route) =>
      isReloaded ? route.continue() : route.fulfill({ status: 404, body: '' }),
    );
    await tab.signIn('/modules/new');
    await page.evaluate("document.body.dataset.loaded = 'once'");
    await tab.go('/settings');
    await page.getByText('The console was updated').waitFor();
    expect(await page.evaluate('document.body.dataset.loaded')).toBe('once');
    // The page also loads as soon as its code exists, so the code must be missing until the reload.
    page.on('request', (request) => {
      isReloaded ||= request.isNavigationRequest();
    });
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    expect(await page.evaluate('document.body.dataset.loaded')).toBe(undefined);
  });

  test('shows a signed-in operator the outlines of the page until its code is loaded', async ({ tab }) => {
    const { page } = tab;
    await tab.signIn('/modules');
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>();
    await page.route('**/assets/*.js', async (route) => {
      if (!route.request().url().includes('/start-')) await isReleased;
      await route.continue();
    });
    await page.reload({ waitUntil: 'commit' });
    const outlines = page.locator('#outlines');
    await outlines.waitFor();
    expect(await page.evaluate('document.documentElement.dataset.theme')).toMatch(/^(light|dark)$/);
    release();
    await page.getByRole('heading', { level: 1, name: 'Modules' }).waitFor();
    await expect.poll(() => outlines.count()).toBe(0);
  });

  test('loads pages before their first visit, while the browser is idle', async ({ tab }) => {
    const { page } = tab;
    const loaded = page.waitForResponse((answer) => /settings-page/.test(answer.url()));
    await tab.signIn('/modules');
    expect((await loaded).status()).toBe(200);
  });
});
