import { describe, expect } from 'vitest';
import { fixApi } from './fixed-api.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

/** Returns the texts in a part of the page that are cut at the end. */
const cutTexts = (within: string): string => `[...document.querySelectorAll(${JSON.stringify(`${within} .truncate`)})]
  .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth)
  .map((element) => element.textContent)`;

/** Returns the tables that are wider than the page. */
const wideTables = `[...document.querySelectorAll('#content [role=grid]')]
  .flatMap((table) => [table, table.parentElement])
  .filter((element) => element.scrollWidth > element.clientWidth)
  .map((element) => element.scrollWidth - element.clientWidth + ' px too wide')`;

/** Parts of pages whose texts must be whole, with the width of the window in pixels. */
const parts: readonly (readonly [width: number, path: string, within: string])[] = [
  [1280, '/agents', '[role=columnheader]'],
  [1280, '/assignments', '[role=grid]'],
  [1280, '/assignments/web', '[role=grid]'],
  [1280, '/runs', '[role=grid]'],
  [1280, '/operations', '[role=grid] [role=gridcell]:nth-child(4)'],
  [390, '/operations', '[role=grid]'],
  [390, '/settings', '#content'],
  [390, '/runs', '[role=grid]'],
];

describe.skipIf(reason !== null)(`the texts of the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('shows results, outcomes, and names whole', async ({ tab }) => {
    await tab.untraced();
    await fixApi(tab.page);
    await tab.signIn();
    const cut: Record<string, unknown> = {};
    for (const [width, path, within] of parts) {
      await tab.page.setViewportSize({ width, height: 800 });
      await tab.go(path);
      await tab.settled();
      await tab.fontsShown();
      const texts = (await tab.page.evaluate(`[...${cutTexts(within)}, ...${wideTables}]`)) as string[];
      if (texts.length > 0) cut[`${path} at ${width} px`] = texts;
    }
    expect(cut).toEqual({});
  });

  test('shows a column for wider screens on request', async ({ tab }) => {
    await tab.untraced();
    await fixApi(tab.page);
    await tab.signIn('/agents');
    const { page } = tab;
    const header = page.getByRole('columnheader', { name: 'Address' });
    await page.getByRole('columnheader', { name: 'System' }).waitFor();
    expect(await header.count()).toBe(0);
    await page.getByRole('button', { name: 'Columns' }).click();
    const address = page.getByRole('menuitemcheckbox', { name: 'Address wider screens only' });
    expect(await address.isChecked()).toBe(false);
    await address.click();
    await page.keyboard.press('Escape');
    await header.waitFor();
  });

  test('starts a fact that wraps on its first line, and shows the counts of the overview in even rows', async ({
    tab,
  }) => {
    await tab.untraced();
    await fixApi(tab.page);
    await tab.signIn();
    const { page } = tab;
    await page.setViewportSize({ width: 390, height: 800 });
    await tab.go('/agents/web-paris-1');
    await tab.settled();
    // The distance from the top of a value to the first line of its text.
    const gaps = `[...document.querySelectorAll('#content dl dd')].map((value) => {
      const range = document.createRange();
      range.selectNodeContents(value);
      return Math.max(...[...range.getClientRects()].slice(0, 1).map(({ top }) => top - value.getBoundingClientRect().top));
    }).filter((gap) => gap > 8)`;
    expect(await page.evaluate(gaps)).toEqual([]);
    await tab.go('/');
    await tab.settled();
    const tops = `[...document.querySelectorAll('[aria-label="Agents by sync state"] li')].map((each) => Math.round(each.getBoundingClientRect().top))`;
    const rows = (await page.evaluate(tops)) as number[];
    expect(rows).toHaveLength(4);
    expect(new Set(rows).size).toBe(2);
    expect(rows.filter((top) => top === rows[0])).toHaveLength(2);
  });
});
