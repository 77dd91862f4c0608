import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { inBothThemes } from './accessible.ts';
import { fixApi } from './fixed-api.ts';
import type { Tab } from './tab.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

const press = (name: string | RegExp) => (page: Page) =>
  page.locator('#content').getByRole('button', { name }).first().click();
const fromMenu = (button: string, item: string | RegExp) => async (page: Page) => {
  await press(button)(page);
  await page.getByRole('menuitem', { name: item }).click();
};
const withSelection = (button: string | RegExp) => async (page: Page) => {
  await page.getByRole('checkbox', { name: 'Select web-paris-1', exact: true }).click();
  await page.getByRole('region', { name: 'Selected agents' }).getByRole('button', { name: button }).first().click();
};

/** How to open each dialog: its page, and what to do there. */
const dialogs: readonly (readonly [name: string, path: string, open: (page: Page) => Promise<void>])[] = [
  ['palette', '/', (page) => page.keyboard.press('Control+k')],
  ['keyboard shortcuts', '/', (page) => page.keyboard.press('?')],
  ['tag agents', '/agents', withSelection(/^Tag/)],
  ['add channel', '/channels', press('Add channel')],
  ['edit channel', '/channels', fromMenu('More', /Edit/)],
  ['remove channel', '/channels', fromMenu('More', /Remove/)],
  ['new token', '/enrolment', press('New token')],
  ['discover', '/enrolment', press('Discover')],
  ['new secret', '/secrets', press('New secret')],
  ['remove secret', '/secrets', press(/^Remove db_password/)],
  ['rotate key', '/secrets', press('Rotate key')],
  ['new maintenance window', '/windows', press('New window')],
  ['add operator', '/operators', press(/operator/)],
  ['retention', '/audit', press(/Retention/)],
];

const shown = '[role=dialog], [role=alertdialog]';

async function signedIn(tab: Tab): Promise<void> {
  await tab.untraced();
  await fixApi(tab.page);
  await tab.signIn();
}

const staticPages = async (tab: Tab): Promise<string[]> =>
  (await tab.addresses()).filter((address) => !address.includes('$') && address !== '/login');

describe.skipIf(reason !== null)(`the console for everyone${reason === null ? '' : ` (${reason})`}`, () => {
  test('dialogs have no axe violations, and return the focus', async ({ tab }) => {
    await signedIn(tab);
    const { page } = tab;
    const faults: Record<string, string[]> = {};
    for (const [name, path, open] of dialogs) {
      await tab.go(path);
      await tab.settled();
      await open(page);
      await page.locator(shown).first().waitFor();
      await tab.settled();
      const found = await inBothThemes(tab, '[role=dialog],[role=alertdialog]');
      await page.keyboard.press('Escape');
      await page.locator(shown).first().waitFor({ state: 'detached' });
      // A closed dialog returns the focus in a timer.
      await page.evaluate('new Promise((done) => setTimeout(done))');
      if (await page.evaluate('document.activeElement === document.body')) found.push('the focus is lost');
      if (found.length > 0) faults[name] = found;
    }
    expect(faults).toEqual({});
  });

  test('no page scrolls sideways at 200 % zoom', async ({ tab }) => {
    await signedIn(tab);
    // 1280 x 800 pixels at 200 %.
    await tab.page.setViewportSize({ width: 640, height: 400 });
    const wide: string[] = [];
    for (const address of await staticPages(tab)) {
      await tab.go(address);
      await tab.settled();
      const isWide = `[document.scrollingElement, document.querySelector('#content')].some((e) => e.scrollWidth > e.clientWidth)`;
      if (await tab.page.evaluate(isWide)) wide.push(address);
    }
    expect(wide).toEqual([]);
  });

  test('nothing moves if the operator prefers reduced motion', async ({ tab }) => {
    await signedIn(tab);
    const moving: string[] = [];
    for (const address of await staticPages(tab)) {
      await tab.go(address);
      await tab.settled();
      const endless = `document.getAnimations().filter(({ effect, playState }) =>
        playState === 'running' && effect.getComputedTiming().endTime > 100).length`;
      if (Number(await tab.page.evaluate(endless)) > 0) moving.push(address);
    }
    expect(moving).toEqual([]);
  });

  test('the keyboard goes from the search to the rows and back', async ({ tab }) => {
    await signedIn(tab);
    const { page } = tab;
    await tab.go('/agents');
    await tab.settled();
    await page.keyboard.press('/');
    await page.keyboard.type('db-berlin');
    await tab.settled();
    await page.keyboard.press('ArrowDown');
    const focused = () => page.evaluate("document.activeElement.getAttribute('aria-rowindex')");
    expect(await focused()).toBe('2');
    await page.keyboard.press('ArrowDown');
    await expect.poll(focused).toBe('3');
    await page.keyboard.press('ArrowUp');
    await expect.poll(focused).toBe('2');
    await page.keyboard.press('ArrowUp');
    expect(await page.evaluate("document.activeElement.matches('[data-search]')")).toBe(true);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: /db-berlin-1/ }).waitFor();
  });
});
