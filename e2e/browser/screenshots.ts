import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { builtConsole } from '../../tools/build/build-console.ts';
import { Showcase } from '../showcase/showcase.ts';
import { type Orchestrator, Stage } from '../stage.ts';
import { openBrowser } from './chromium.ts';
import { fileNameOf, pagesOf } from './pages.ts';
import { Tab } from './tab.ts';

/**
 * Takes screenshots of every console page, and of some dialogs, with data from a busy fleet:
 *
 *     npm run console:screenshots -- DIRECTORY [--only agents] [--widths 390,820,1280,1920] [--themes light,dark] [--empty]
 *
 * `--only` selects the pages whose name contains one of the words. `--empty` uses an orchestrator without agents.
 */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: '' },
    widths: { type: 'string', default: '390,820,1280,1920' },
    themes: { type: 'string', default: 'light,dark' },
    empty: { type: 'boolean', default: false },
  },
});
const [directory] = positionals;
if (directory === undefined) {
  console.error('No directory for the screenshots is given. Run: npm run console:screenshots -- DIRECTORY');
  process.exit(2);
}
const only = values.only.split(',');
const height = 900;
const tallest = 2600;

/** Makes the window tall enough to show content that would otherwise require scrolling, up to `tallest` pixels. */
async function stretched(tab: Tab, width: number): Promise<void> {
  const hidden = await tab.page.evaluate(
    `Math.max(0, ...[...document.querySelectorAll('#content, [role=dialog]')].map((e) => e.scrollHeight - e.clientHeight))`,
  );
  await tab.page.setViewportSize({ width, height: Math.min(tallest, height + Number(hidden)) });
}

/** @param isStretched whether to show all content; otherwise what the window shows without scrolling */
async function shoot(tab: Tab, name: string, width: number, theme: string, isStretched = true): Promise<void> {
  await tab.settled().catch((error: Error) => console.error(`${name}: ${error.message}`));
  await tab.fontsShown();
  if (isStretched) await stretched(tab, width);
  await tab.page.screenshot({ path: join(directory as string, `${name}.${width}.${theme}.png`) });
  await tab.page.setViewportSize({ width, height });
}

/** Dialogs by name: a page of the showcase, the button that opens the dialog there, and a button to press in it. */
const dialogs: Readonly<Record<string, readonly [path: string, button: string, inside?: string]>> = {
  'approve-dialog': ['/', 'Approve…'],
  'apply-dialog': ['/agents/web-paris-1', 'Apply…'],
  'apply-run-dialog': ['/assignments/web', 'Apply…'],
  'add-machine-dialog': ['/agents', 'Add machine'],
  'add-machine-command': ['/agents', 'Add machine', 'Copy command'],
  'new-secret-dialog': ['/secrets', 'New secret'],
};

/** Takes screenshots of dialogs as they open. */
async function shootDialogs(tab: Tab, names: readonly string[], width: number, theme: string): Promise<void> {
  for (const name of names) {
    const [path, button, inside] = dialogs[name] as (typeof dialogs)[string];
    await tab.go(path);
    await tab.settled();
    await tab.page.locator('#content').getByRole('button', { name: button }).first().click();
    const dialog = tab.page.getByRole('dialog');
    await dialog.waitFor();
    if (inside !== undefined) await dialog.getByRole('button', { name: inside }).click();
    await shoot(tab, name, width, theme, false);
    await tab.page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  }
}

async function shootAll(
  browser: Browser,
  orchestrator: Orchestrator,
  showcase: Showcase | null,
  width: number,
  theme: 'light' | 'dark',
): Promise<void> {
  const tab = await Tab.open(browser, orchestrator, { colorScheme: theme, viewport: { width, height } });
  const isSelected = (name: string) => only.some((word) => name.includes(word));
  if (isSelected('sign-in')) {
    await tab.page.goto(orchestrator.url);
    await shoot(tab, 'sign-in', width, theme);
  }
  await tab.signIn();
  const addresses = await tab.addresses();
  const pages = showcase
    ? await pagesOf(addresses, showcase)
    : new Map(addresses.filter((address) => !address.includes('$')).map((address) => [address, address]));
  for (const [address, path] of pages) {
    const name = fileNameOf(address);
    if (!isSelected(name)) continue;
    await tab.go(path);
    await shoot(tab, name, width, theme);
  }
  for (const [name, keys] of [
    ['palette', 'Control+k'],
    ['help', '?'],
  ] as const) {
    if (!isSelected(name)) continue;
    await tab.go('/');
    await tab.settled();
    await tab.page.keyboard.press(keys);
    // The browser loads the dialog's code on first use.
    const dialog = tab.page.getByRole('dialog');
    await dialog.waitFor();
    await shoot(tab, name, width, theme);
    await tab.page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
  }
  if (showcase !== null) await shootDialogs(tab, Object.keys(dialogs).filter(isSelected), width, theme);
  for (const fault of new Set(tab.watch.faults)) console.error(`${width} ${theme}: ${fault}`);
  await tab.close();
}

mkdirSync(resolve(directory), { recursive: true });
await builtConsole(() => console.log('building the console'));
const stage = new Stage();
const browser = await openBrowser();
let showcase: Showcase | null = null;
try {
  const orchestrator = await stage.orchestrator();
  if (!values.empty) showcase = await Showcase.open(stage, orchestrator);
  for (const theme of values.themes.split(',') as ('light' | 'dark')[])
    for (const width of values.widths.split(',').map(Number)) {
      await shootAll(browser, orchestrator, showcase, width, theme);
      console.log(`${width} px, ${theme}: done`);
    }
} finally {
  await showcase?.end();
  await browser.close();
  await stage.end();
}
process.exit(0);
