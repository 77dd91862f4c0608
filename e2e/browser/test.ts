import type { Browser } from 'playwright-core';
import { test as base, expect } from 'vitest';
import { builtConsole } from '../../tools/build/build-console.ts';
import { missing } from '../requirements.ts';
import { type Orchestrator, Stage } from '../stage.ts';
import { openBrowserApart } from './chromium.ts';
import { Tab } from './tab.ts';

/**
 * Returns the reason why browser tests cannot run on this machine; null if they can.
 * @throws Error in CI, which must be able to run them
 */
export function noBrowser(): string | null {
  const reason = missing('linux', 'browser');
  if (reason !== null && process.env.CI === 'true') throw new Error(reason);
  return reason;
}

/** Starts a browser and an orchestrator for each test file, because starting them takes longer than a test. */
const shared = base.extend<{ $file: { browser: Browser; stage: Stage; orchestrator: Orchestrator } }>({
  browser: [
    // biome-ignore lint/correctness/noEmptyPattern: what a fixture depends on is read from its first parameter
    async ({}, use) => {
      const browser = await openBrowserApart();
      await use(browser);
      await browser.close();
    },
    { scope: 'file' },
  ],
  stage: [
    // biome-ignore lint/correctness/noEmptyPattern: as above
    async ({}, use) => {
      const stage = new Stage();
      try {
        await use(stage);
      } finally {
        await stage.end();
      }
    },
    { scope: 'file' },
  ],
  orchestrator: [
    async ({ stage }, use) => {
      await builtConsole();
      await use(await stage.orchestrator());
    },
    { scope: 'file' },
  ],
});

/** Runs each test in its own tab. */
export const test = shared.extend<{ tab: Tab }>({
  tab: async ({ browser, orchestrator, stage, task }, use) => {
    const tab = await Tab.open(browser, orchestrator);
    await use(tab);
    if (task.result?.state === 'fail' || tab.watch.faults.length > 0) await tab.keep(task.name, stage.report());
    await tab.close();
    expect(tab.watch.faults).toEqual([]);
  },
});
