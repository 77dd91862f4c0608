import { expect } from 'vitest';
import { fixApi } from './fixed-api.ts';
import { Tab } from './tab.ts';
import { test as base } from './test.ts';

/** Returns a time zone in which it is noon, so that screenshots of days do not depend on the time of the test. */
function noonZone(): string {
  const hours = 12 - new Date().getUTCHours();
  // The sign is that of POSIX: west is positive.
  return `Etc/GMT${hours < 0 ? `+${-hours}` : `-${hours}`}`;
}

/** A tab with fixed data for each test file, because a sign-in takes longer than most of the tests. */
const sharing = base.extend<{ $file: { shared: Tab } }>({
  shared: [
    async ({ browser, orchestrator }, use) => {
      const tab = await Tab.open(browser, orchestrator, { timezoneId: noonZone() });
      await fixApi(tab.page);
      await tab.signIn();
      await use(tab);
      await tab.close();
    },
    { scope: 'file' },
  ],
});

/** Runs the tests of a file in one tab. Each test begins on the overview, and reports only its own errors. */
export const test = sharing.extend<{ fixed: Tab }>({
  fixed: async ({ shared, stage, task }, use) => {
    await shared.page.emulateMedia({ colorScheme: null });
    await shared.page.setViewportSize({ width: 1280, height: 800 });
    await shared.go('/');
    await shared.settled();
    const earlier = shared.watch.faults.length;
    await use(shared);
    const faults = shared.watch.faults.slice(earlier);
    if (task.result?.state === 'fail' || faults.length > 0) await shared.keep(task.name, stage.report());
    expect(faults).toEqual([]);
  },
});
