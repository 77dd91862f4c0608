import { describe, expect } from 'vitest';
import { eventually } from '../eventually.ts';
import { differenceOf, faultOf, maxDifferingPixels } from './compare-pictures.ts';
import { fixApi } from './fixed-api.ts';
import type { Tab } from './tab.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();
const size = { width: 1280, height: 800 };

/** Pages by name of the picture. */
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
};

/** Takes a screenshot of the window, without animations and text cursor, once two consecutive screenshots are equal. */
async function pictureOf(tab: Tab): Promise<Buffer> {
  await tab.fontsShown();
  await tab.page.mouse.move(0, size.height - 1);
  let last: Buffer | null = null;
  return await eventually('the page does not change', async () => {
    await tab.settled();
    const picture = await tab.page.screenshot({ animations: 'disabled', caret: 'hide' });
    const isStable = last?.equals(picture) === true;
    last = picture;
    return isStable ? picture : null;
  });
}

async function signedIn(tab: Tab): Promise<void> {
  await tab.untraced();
  await tab.page.setViewportSize(size);
  await fixApi(tab.page);
  await tab.signIn();
}

describe.skipIf(reason !== null)(`the looks of the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('pages look as approved, in both themes and on a phone', async ({ tab }) => {
    await signedIn(tab);
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

  test('a button that moves by two pixels is a difference', async ({ tab }) => {
    await signedIn(tab);
    await tab.go('/channels');
    const before = await pictureOf(tab);
    expect(differenceOf(before, await pictureOf(tab)).pixels).toBeLessThanOrEqual(maxDifferingPixels);
    await tab.page.evaluate("document.querySelector('#content header button').style.translate = '2px 0'");
    expect(differenceOf(before, await pictureOf(tab)).pixels).toBeGreaterThan(maxDifferingPixels);
  });
});
