import { describe, expect } from 'vitest';
import { Showcase } from '../showcase/showcase.ts';
import { violationsOf } from './accessible.ts';
import { pagesOf } from './pages.ts';
import type { Tab } from './tab.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();

/** Goes to each page and looks at it. @returns what is wrong, by page */
async function walk(tab: Tab, pages: ReadonlyMap<string, string>): Promise<Record<string, string[]>> {
  const seen: Record<string, string[]> = {};
  for (const [address, path] of pages) {
    await tab.go(path);
    await tab.settled();
    // What stands around it is the same everywhere.
    const violations = await violationsOf(tab.page, Object.keys(seen).length === 0 ? null : '#content');
    if ((await tab.page.getByRole('heading', { level: 1 }).count()) !== 1)
      violations.push('not one heading of level 1');
    if (!(await tab.page.title()).endsWith('Muster')) violations.push(`its title is ${await tab.page.title()}`);
    seen[address] = violations;
  }
  return Object.fromEntries(Object.entries(seen).filter(([, faults]) => faults.length > 0));
}

describe.skipIf(reason !== null)(`every page of the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('has no violation that axe finds while there is nothing to show', async ({ tab }) => {
    await tab.page.goto(tab.url);
    await tab.page.getByRole('button', { name: 'Open key file' }).waitFor();
    expect(await violationsOf(tab.page)).toEqual([]);
    await tab.signIn();
    const addresses = (await tab.addresses()).filter((address) => !address.includes('$') && address !== '/login');
    expect(await walk(tab, new Map(addresses.map((address) => [address, address])))).toEqual({});
  });

  test('has none with a fleet that is at work', async ({ tab, stage, orchestrator }) => {
    const showcase = await Showcase.open(stage, orchestrator);
    await tab.signIn();
    expect(await walk(tab, await pagesOf(await tab.addresses(), showcase))).toEqual({});
    await showcase.end();
  });
});
