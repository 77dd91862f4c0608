import { describe, expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { someTests } from '../some-tests.ts';
import { differenceOf, faultOf, maxDifferingPixels } from './compare-pictures.ts';
import { test } from './fixed-tab.ts';
import type { Tab } from './tab.ts';
import { noBrowser } from './test.ts';

const reason = noBrowser();

/** Pages by screenshot name. */
const pages: Readonly<Record<string, string>> = {
  overview: '/',
  agents: '/agents',
  'out-of-sync': '/out-of-sync',
  modules: '/modules',
  assignments: '/assignments',
  runs: '/runs',
  operations: '/operations',
  secrets: '/secrets',
  notifications: '/notifications',
  channels: '/channels',
  audit: '/audit',
  kinds: '/kinds',
  kind: '/kinds/sysctl',
};

/** Pages on a tablet by screenshot name. */
const tabletPages: Readonly<Record<string, string>> = { 'overview-tablet': '/', 'agents-tablet': '/agents' };

/** Responses to the request for the modules, by screenshot name of the page that shows them. */
const moduleAnswers = {
  'modules-empty': { status: 200, json: [] },
  'modules-error': {
    status: 500,
    json: {
      ...{ type: 'about:blank', title: 'Unexpected failure', status: 500, code: 'internal', instance: 'request-1' },
      detail: 'the database could not be read',
    },
  },
} as const;

/** Takes a screenshot of the window, without animations and text cursor, once two consecutive screenshots are equal. */
async function pictureOf(tab: Tab): Promise<Buffer> {
  await tab.fontsShown();
  await tab.page.mouse.move(0, 799);
  let last: Buffer | null = null;
  return await eventually('the page does not change', async () => {
    await tab.settled();
    const picture = await tab.page.screenshot({ animations: 'disabled', caret: 'hide' });
    const isStable = last?.equals(picture) === true;
    last = picture;
    return isStable ? picture : null;
  });
}

/** Returns the strings in a part of the page that are truncated. */
const cutTexts = (within: string): string => `[...document.querySelectorAll(${JSON.stringify(`${within} .truncate`)})]
  .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth)
  .map((element) => element.textContent)`;

/** Returns the tables that are wider than the page. */
const wideTables = `[...document.querySelectorAll('#content [role=grid]')]
  .flatMap((table) => [table, table.parentElement])
  .filter((element) => element.scrollWidth > element.clientWidth)
  .map((element) => element.scrollWidth - element.clientWidth + ' px too wide')`;

/** Parts of pages whose text must not be truncated, with the width of the window in pixels. */
const parts: readonly (readonly [width: number, path: string, within: string])[] = [
  [1280, '/agents', '[role=columnheader]'],
  [1280, '/assignments', '[role=grid]'],
  [1280, '/assignments/web', '[role=grid]'],
  [1280, '/runs', '[role=grid]'],
  [1280, '/operations', '[role=grid] [role=gridcell]:nth-child(3)'],
  [390, '/operations', '[role=grid]'],
  [390, '/settings', '#content'],
  [390, '/runs', '[role=grid]'],
  [390, '/agents/web-paris-1', '[aria-label=Operations]'],
  [390, '/agents', '[role=grid]'],
  [390, '/modules', '[role=grid]'],
  [390, '/secrets', '[role=grid]'],
  [390, '/channels', '[role=grid]'],
  [390, '/windows', '[role=grid]'],
  [1280, '/channels', '[role=grid]'],
  [1280, '/windows', '[role=grid]'],
  [1280, '/out-of-sync', '[role=grid]'],
  [390, '/out-of-sync', '[aria-label="Out of sync"] .wraps-names'],
  [390, '/', '#content a[href^="/runs/"]'],
];

describe.skipIf(reason !== null)(`the appearance of the console${reason === null ? '' : ` (${reason})`}`, () => {
  /** These tests do not depend on each other. */
  const testSome = someTests(test, 2, 'pictures');

  test('pages match the approved screenshots, in both themes and on a phone', async ({ fixed: tab }) => {
    const faults: (string | null)[] = [];
    for (const [name, path] of Object.entries(pages)) {
      await tab.go(path);
      faults.push(faultOf(name, await pictureOf(tab)));
    }
    await tab.page.emulateMedia({ colorScheme: 'dark' });
    await tab.go('/');
    faults.push(faultOf('overview-dark', await pictureOf(tab)));
    await tab.page.setViewportSize({ width: 390, height: 800 });
    faults.push(faultOf('overview-phone-dark', await pictureOf(tab)));
    expect(faults.filter((fault) => fault !== null)).toEqual([]);
  });

  test('tablet pages, an empty list, and a failed page match the approved screenshots', async ({ fixed: tab }) => {
    const { page, watch } = tab;
    const faults: (string | null)[] = [];
    const list = /\/api\/v1\/modules(\?|$)/;
    for (const [name, answer] of Object.entries(moduleAnswers)) {
      await page.route(list, (intercepted) => intercepted.fulfill(answer));
      await tab.go('/modules');
      if (answer.status >= 400) watch.expects(/^answered 500: GET \S+\/modules/, /^console: .* status of 500 /);
      // Loads the list again.
      await page.reload();
      await page.getByRole('heading', { level: 1, name: 'Modules' }).waitFor();
      faults.push(faultOf(name, await pictureOf(tab)));
      await page.unroute(list);
    }
    await page.reload();
    await page.setViewportSize({ width: 820, height: 800 });
    for (const [name, path] of Object.entries(tabletPages)) {
      await tab.go(path);
      faults.push(faultOf(name, await pictureOf(tab)));
    }
    expect(faults.filter((fault) => fault !== null)).toEqual([]);
  });

  test('the comparison detects a button that moved by two pixels', async ({ fixed: tab }) => {
    await tab.go('/channels');
    const before = await pictureOf(tab);
    expect(differenceOf(before, await pictureOf(tab)).pixels).toBeLessThanOrEqual(maxDifferingPixels);
    await tab.page.evaluate("document.querySelector('#content header button').style.translate = '2px 0'");
    expect(differenceOf(before, await pictureOf(tab)).pixels).toBeGreaterThan(maxDifferingPixels);
  });

  test('shows results, outcomes, and names in full', async ({ fixed: tab }) => {
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

  testSome('leaves space around the two lines of a row on a phone', async ({ fixed: tab }) => {
    await tab.page.setViewportSize({ width: 390, height: 800 });
    const spaces = `[...document.querySelectorAll('[role=grid] [role=row][data-index]')].flatMap((row) => {
      const outer = row.getBoundingClientRect();
      const inner = row.querySelector('.wraps-names > *').getBoundingClientRect();
      return [inner.top - outer.top, outer.bottom - inner.bottom].map(Math.round);
    })`;
    for (const path of ['/runs', '/out-of-sync', '/out-of-sync?tab=checks', '/channels', '/windows']) {
      await tab.go(path);
      await tab.settled();
      const found = (await tab.page.evaluate(spaces)) as number[];
      expect(found.length).toBeGreaterThan(0);
      expect(Math.min(...found)).toBeGreaterThanOrEqual(5);
    }
  });

  testSome('fits a phone, with targets that a finger hits', async ({ fixed: tab }) => {
    const small: Record<string, unknown> = {};
    // The touch area includes the extension of a button around its border or over its row. All of a row that opens is a
    // touch area, so the name in it is exempt.
    const targets = `[...document.querySelectorAll('#content button, #content input, #content select, header button')]
      .filter((each) => each.checkVisibility() && each.closest('.sr-only, p, [role=row] .wraps-names') === null)
      .map((each) => {
        const after = getComputedStyle(each, '::after');
        const isExtended = after.position === 'absolute';
        const covers = isExtended && getComputedStyle(each).position === 'static';
        const box = (covers ? each.offsetParent : (each.closest('label') ?? each)).getBoundingClientRect();
        const inset = isExtended ? Math.min(0, Number.parseFloat(after.insetBlockStart) || 0) : 0;
        return [each.getAttribute('aria-label') ?? each.textContent, Math.round(box.height - 2 * inset)];
      })
      .filter(([, height]) => height < 44)`;
    const excess = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('#content'))";
    for (const width of [360, 420]) {
      await tab.page.setViewportSize({ width, height: 800 });
      for (const path of [...Object.values(pages), '/windows']) {
        await tab.go(path);
        await tab.settled();
        const found = [await tab.page.evaluate(excess), await tab.page.evaluate(targets)];
        if (JSON.stringify(found) !== '[0,[]]') small[`${path} at ${width} px`] = found;
      }
    }
    expect(small).toEqual({});
  });

  testSome(
    'opens the enrollment page at both spellings, and states that an address is unknown',
    async ({ fixed: tab }) => {
      const { page } = tab;
      await tab.go('/enrollment');
      await page.getByRole('heading', { level: 1, name: 'Enrollment' }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/enrolment');
      await tab.go('/nowhere');
      await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor();
      await page.getByText('Check the address, or go to the overview.').waitFor();
    },
  );

  testSome('shows an example of a new module within the width of a phone', async ({ fixed: tab }) => {
    await tab.page.setViewportSize({ width: 390, height: 800 });
    await tab.go('/modules/new');
    await tab.page.getByRole('button', { name: 'A package and its service' }).click();
    await tab.page.getByText('nginx-light').waitFor();
    const excess = "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('#content'))";
    expect(await tab.page.evaluate(excess)).toBe(0);
  });

  testSome('shows a column for wider screens on request', async ({ fixed: tab }) => {
    await tab.go('/agents');
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
    // Restores the columns, because other tests share the tab.
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('menuitemcheckbox', { name: 'Address' }).click();
    await page.keyboard.press('Escape');
    await header.waitFor({ state: 'detached' });
  });

  testSome(
    'starts a wrapped fact at the top of its row, and shows the counts of the overview in even rows',
    async ({ fixed: tab }) => {
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
      expect(rows).toHaveLength(5);
      expect(new Set(rows).size).toBe(3);
      expect(rows.filter((top) => top === rows[0])).toHaveLength(2);
    },
  );
});
