import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';
import { sampled } from '../../lib/test/sampled.ts';
import { inBothThemes } from './accessible.ts';
import { fixApi } from './fixed-api.ts';
import { test } from './fixed-tab.ts';
import { noBrowser } from './test.ts';

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

/** How to open each dialog: the page, and the steps on it. */
const dialogs: readonly (readonly [name: string, path: string, open: (page: Page) => Promise<void>])[] = [
  ['palette', '/', (page) => page.keyboard.press('Control+k')],
  ['keyboard shortcuts', '/', (page) => page.keyboard.press('?')],
  ['tag agents', '/agents', withSelection(/^Tag/)],
  ['add channel', '/channels', press('Add channel')],
  ['edit channel', '/channels', fromMenu('Actions on on-call', /Edit/)],
  ['remove channel', '/channels', fromMenu('Actions on on-call', /Remove/)],
  ['new token', '/enrolment', press('New token')],
  ['discover', '/enrolment', press('Discover')],
  ['new secret', '/secrets', press('New secret')],
  ['remove secret', '/secrets', fromMenu('Actions on db_password', /Remove/)],
  ['rotate key', '/secrets', press('Rotate encryption key')],
  ['new maintenance window', '/windows', press('New window')],
  ['add operator', '/operators', press(/operator/)],
  ['retention', '/audit', press(/Retention/)],
];

/** Number of dialogs that `npm test` checks, selected at random. `npm run soak -- kill-steps` checks all. */
const dialogsChecked = 6;

const shown = '[role=dialog], [role=alertdialog]';

/** Returns what a screen reader announces for a part of the page. Expects every interactive element to have a name. */
async function announced(page: Page, part: string): Promise<string> {
  const tree = await page.locator(part).first().ariaSnapshot();
  expect(tree).not.toMatch(/- (button|link|textbox|checkbox|combobox|tab|menuitem)(:| \[|$)/m);
  return tree;
}

/** Computes the contrast of a field's border and of the focus ring with their backgrounds. */
const contrasts = `(() => {
  const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const luminance = (color) => {
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const style = getComputedStyle(document.querySelector('#content input[type=search]'));
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [
    ratio(style.borderTopColor, style.backgroundColor),
    ratio(style.borderTopColor, color('--canvas')),
    ...['--canvas', '--surface', '--raised'].map((background) => ratio(color('--accent'), color(background))),
  ];
})()`;

describe.skipIf(reason !== null)(`the console for everyone${reason === null ? '' : ` (${reason})`}`, () => {
  test('dialogs have no axe violations, and return the focus', async ({ fixed: tab }) => {
    const { page } = tab;
    const faults: Record<string, string[]> = {};
    for (const [name, path, open] of sampled(dialogs, dialogsChecked)) {
      await tab.go(path);
      await tab.settled();
      await open(page);
      await page.locator(shown).first().waitFor();
      await tab.settled();
      const found = await inBothThemes(tab, '[role=dialog],[role=alertdialog]');
      await page.keyboard.press('Escape');
      await page.locator(shown).first().waitFor({ state: 'detached' });
      // A dialog returns the focus in a timer callback after it closes.
      await page.evaluate('new Promise((done) => setTimeout(done))');
      if (await page.evaluate('document.activeElement === document.body')) found.push('the focus is lost');
      if (found.length > 0) faults[name] = found;
    }
    expect(faults).toEqual({});
  });

  test('a screen reader can sign in, approve an agent, and apply', async ({ tab }) => {
    const { page } = tab;
    await page.goto(tab.url);
    await page.getByRole('button', { name: 'Open key file' }).waitFor();
    const signIn = await announced(page, 'main');
    expect(signIn).toContain('- heading "Sign in to Muster" [level=1]');
    expect(signIn).toContain('- button "Open key file"');
    await fixApi(page);
    await tab.signIn();

    await tab.go('/agents');
    await tab.settled();
    await page.getByRole('checkbox', { name: 'Select new-machine' }).click();
    const selected = page.getByRole('region', { name: 'Selected agents' });
    expect(await announced(page, '[aria-label="Selected agents"]')).toContain('- status: 1 selected');
    await selected.getByRole('button', { name: 'Approve 1' }).click();
    await page.getByRole('dialog', { name: 'Approve this agent' }).waitFor();
    const approve = await announced(page, '[role=dialog]');
    expect(approve).toContain('- heading "Approve this agent"');
    expect(approve).toContain('- textbox');
    expect(approve).toContain('- button "Approve"');
    await page.keyboard.press('Escape');

    await tab.go('/agents/web-paris-1');
    await tab.settled();
    await page.getByRole('button', { name: /^Apply/ }).click();
    const dialog = page.locator(shown).first();
    await dialog.waitFor();
    expect(await announced(page, shown)).toMatch(/- heading "Apply[^"]*web-paris-1/);
    await dialog.getByRole('button', { name: 'Cancel' }).waitFor();
  });

  test('gives fields and focus rings a contrast ratio of at least 3:1', async ({ fixed: tab }) => {
    const { page } = tab;
    await tab.go('/secrets');
    await tab.settled();
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await page.evaluate('new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)))');
      const ratios = (await page.evaluate(contrasts)) as number[];
      expect(Math.min(...ratios)).toBeGreaterThanOrEqual(3);
    }
  });

  test('a tab shows a focus ring for keyboard focus, but not for pointer focus', async ({ fixed: tab }) => {
    const { page } = tab;
    await tab.go('/modules/motd');
    await tab.settled();
    const tabNamed = (name: string) => page.getByRole('tab', { name });
    const showsRing = (name: string) => tabNamed(name).evaluate((element) => element.matches(':focus-visible'));
    await tabNamed('Try it').click();
    await tab.settled();
    expect(await tabNamed('Try it').getAttribute('aria-selected')).toBe('true');
    expect(await showsRing('Try it')).toBe(false);
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => showsRing('Revisions')).toBe(true);
  });

  test('the arrow keys move the focus from the search to the rows and back', async ({ fixed: tab }) => {
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

  test('the palette lists agents in natural order, and finds actions', async ({ fixed: tab }) => {
    const { page } = tab;
    await page.keyboard.press('Control+k');
    const dialog = page.getByRole('dialog');
    const search = dialog.getByRole('combobox');
    await search.fill('web-paris');
    await dialog.getByText('Show all 12 in Agents').waitFor();
    const names = (await dialog.getByRole('option').allInnerTexts()).flatMap(
      (text) => /web-paris-\d+/.exec(text) ?? [],
    );
    expect(names.slice(0, 4)).toEqual(['web-paris-1', 'web-paris-2', 'web-paris-3', 'web-paris-4']);
    await search.fill('dark');
    await dialog.getByRole('option', { name: /dark/i }).waitFor();
    await page.keyboard.press('Escape');
  });

  test('pages report invalid input before a request, and show the same units and ports as the CLI', async ({
    fixed: tab,
  }) => {
    const { page } = tab;
    const content = page.locator('#content');
    // An assignment uses the module.
    await tab.go('/modules/motd');
    await content.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: /Remove/ }).click();
    const removal = page.getByRole('alertdialog');
    expect(await removal.getByRole('button', { name: /Remove/ }).isDisabled()).toBe(true);
    await removal.getByRole('button', { name: 'Cancel' }).click();

    await tab.go('/settings');
    await content.getByText(/\d GiB free/).waitFor();
    expect(await content.innerText()).not.toMatch(/\d [kMGT]B/);

    await tab.go('/enrolment');
    await content.getByRole('button', { name: 'Discover' }).click();
    await page.getByPlaceholder(/:4747$/).waitFor();
    await page.keyboard.press('Escape');

    await tab.go('/modules/new');
    await content.locator('.cm-content').click();
    await page.keyboard.insertText('name: x\nsupports:\n  - platform: linux\n    resources: []\n');
    await page
      .getByText('“resources” belongs at the top level of the module: remove its indentation')
      .first()
      .waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
  });
});
