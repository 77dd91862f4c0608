import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { addOperator } from '@muster/protocol/http';
import { describe, expect } from 'vitest';
import { sampled } from '../../lib/test/sampled.ts';
import { builtConsole } from '../../tools/build/build-console.ts';
import { newOperator } from '../client.ts';
import { Showcase } from '../showcase/showcase.ts';
import { inBothThemes } from './accessible.ts';
import { pagesOf } from './pages.ts';
import type { Tab } from './tab.ts';
import { test as base, noBrowser } from './test.ts';

const reason = noBrowser();

const test = base.extend<{ $file: { showcase: Showcase } }>({
  showcase: [
    async ({ stage, orchestrator }, use) => {
      const showcase = await Showcase.open(stage, orchestrator);
      await use(showcase);
      await showcase.end();
    },
    { scope: 'file' },
  ],
});

/** Number of pages that each test checks in `npm test`, selected at random. `npm run soak -- kill-steps` checks all. */
const pagesChecked = { withData: 8, empty: 4, withoutRole: 10 };

const size = { width: 1280, height: 800 };
/** 1280 x 800 pixels at 200 %. */
const zoomed = { width: 640, height: 400 };
const isWide = `[document.scrollingElement, document.querySelector('#content')].some((e) => e.scrollWidth > e.clientWidth)`;
/** Number of animations that the preference for reduced motion should end. */
const animations = `document.getAnimations().filter(({ effect, playState }) =>
  playState === 'running' && effect.getComputedTiming().endTime > 100).length`;

/** Checks that the page does not scroll sideways at 200 % zoom, and does not move: tabs prefer reduced motion. */
async function layoutFaults(tab: Tab): Promise<string[]> {
  const isMoving = Number(await tab.page.evaluate(animations)) > 0;
  await tab.page.setViewportSize(zoomed);
  await tab.settled();
  const scrolls = await tab.page.evaluate(isWide);
  await tab.page.setViewportSize(size);
  return [...(isMoving ? ['moves'] : []), ...(scrolls ? ['scrolls sideways at 200 % zoom'] : [])];
}

/**
 * Checks accessibility, heading, title, and layout of a sample of the pages.
 * @returns errors by page; omits pages without errors
 */
async function walk(tab: Tab, pages: ReadonlyMap<string, string>, count: number): Promise<Record<string, string[]>> {
  const seen: Record<string, string[]> = {};
  for (const [address, path] of sampled([...pages], count)) {
    await tab.go(path);
    await tab.settled();
    // Checks the header and navigation only once, because they are the same on every page.
    const faults = await inBothThemes(tab, Object.keys(seen).length === 0 ? null : '#content');
    if ((await tab.page.getByRole('heading', { level: 1 }).count()) !== 1)
      faults.push('the page must have exactly one level-1 heading');
    if (!(await tab.page.title()).endsWith('Muster'))
      faults.push(`the title must end with "Muster": ${await tab.page.title()}`);
    faults.push(...(await layoutFaults(tab)));
    seen[address] = faults;
  }
  return Object.fromEntries(Object.entries(seen).filter(([, faults]) => faults.length > 0));
}

interface Loaded {
  /** Number of bytes as transferred. */
  readonly bytes: number;
  readonly text: string;
}

/** Returns the files that a browser loads to show the overview, by name. */
async function firstLoad(): Promise<Map<string, Loaded>> {
  const folder = await builtConsole();
  const files = new Map<string, Loaded>();
  const load = (name: string): void => {
    if (files.has(name)) return;
    const packed = join(folder, `${name}.gz`);
    const sent = readFileSync(existsSync(packed) ? packed : join(folder, name));
    const text = (sent[0] === 0x1f ? gunzipSync(sent) : sent).toString();
    files.set(name, { bytes: sent.length, text });
    if (name.endsWith('.js'))
      for (const [, imported] of text.matchAll(/(?:from|import)\s*["']\.\/([^"']+)["']/g)) load(`assets/${imported}`);
  };
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  for (const [, name] of page.matchAll(/(?:src|href)="\/(assets\/[^"]+\.(?:js|css))"/g)) load(name as string);
  const overview = readdirSync(join(folder, 'assets')).find((name) => name.startsWith('overview-page-')) as string;
  load(`assets/${overview.replace(/\.gz$|\.br$/, '')}`);
  return files;
}

test('the console loads at most 194 kB, without tables, terminal, and editor, to show the overview', async () => {
  const files = [...(await firstLoad()).values()];
  expect(files.length).toBeGreaterThan(4);
  expect(files.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(194_000);
  const text = files.map(({ text }) => text).join('\n');
  for (const mark of ['aria-multiselectable', 'xterm-helper-textarea', 'cm-scroller', 'ZodError'])
    expect(text).not.toContain(mark);
});

/**
 * Buttons that are disabled for all roles, because there is nothing to save, add, or mark, or because a row has no
 * details.
 */
const idle = /^(Save…|Add|Mark all as read)$|unchanged$/;

/** Explanations of what only admins may do, by path. */
const explained: readonly (readonly [path: string, text: string])[] = [
  ['/enrolment', 'Only admins can see tokens'],
  ['/settings', 'Only admins can see the configuration'],
  ['/operators', 'Only admins can change them'],
];

/** Names of buttons that send requests that only admins may send. */
const adminActions =
  /^(Add operator|New token|Add machine|New window|New channel|Send test|Prune|Change retention|Rotate encryption key|Revoke|Edit window|Remove window)/;

/** Returns the disabled buttons on the page that do not explain why, and the buttons for admins. */
const badButtons = `(() => [...document.querySelectorAll('#content button, #content [role=button]')].flatMap((button) => {
  if (!button.checkVisibility()) return [];
  const name = (button.getAttribute('aria-label') ?? button.textContent).trim();
  const isDisabled = button.disabled || button.getAttribute('aria-disabled') === 'true';
  const explains = button.closest('[title]') !== null || button.hasAttribute('aria-describedby');
  return [{ name, isDead: isDisabled && !explains }];
}))()`;

describe.skipIf(reason !== null)(`every page of the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('console pages for an empty orchestrator have no axe violations, fit at 200 % zoom, and do not move', async ({
    tab,
  }) => {
    await tab.page.goto(tab.url);
    await tab.page.getByRole('button', { name: 'Open key file' }).waitFor();
    expect(await inBothThemes(tab, null)).toEqual([]);
    await tab.signIn();
    const addresses = (await tab.addresses()).filter((address) => !address.includes('$') && address !== '/login');
    const pages = new Map(addresses.map((address) => [address, address]));
    expect(await walk(tab, pages, pagesChecked.empty)).toEqual({});
  });

  test('console pages for a fleet with data have no axe violations, fit at 200 % zoom, and do not move', async ({
    tab,
    showcase,
  }) => {
    await tab.signIn();
    expect(await walk(tab, await pagesOf(await tab.addresses(), showcase), pagesChecked.withData)).toEqual({});

    // Checks the page of an open terminal session and its dialog, which `walk` does not open.
    const { page } = tab;
    await tab.go('/terminals/new/workshop');
    await page.getByRole('button', { name: 'Open terminal' }).click();
    await page.getByText('In control').waitFor();
    await page.getByRole('button', { name: 'connected: show names' }).waitFor();
    expect(await inBothThemes(tab, '#content')).toEqual([]);
    await page.getByRole('button', { name: 'End', exact: true }).click();
    const dialog = page.getByRole('alertdialog', { name: 'End this session?' });
    await dialog.waitFor();
    expect(await inBothThemes(tab, '[role=alertdialog]')).toEqual([]);
    await dialog.getByRole('button', { name: 'End session' }).click();
    await page.getByRole('button', { name: 'Replay' }).waitFor();
    expect(await inBothThemes(tab, '#content')).toEqual([]);
  });

  test('an operator without the role admin finds no page that is refused, and no button that does nothing', async ({
    tab,
    orchestrator,
    showcase,
  }) => {
    const olga = newOperator();
    const body = { public_key: olga.publicKey, username: 'olga', role: 'operator' as const };
    await orchestrator.call(addOperator, { body });
    await tab.signIn('/', orchestrator.clientFor(olga));
    const faults: string[] = [];
    const pages = await pagesOf(await tab.addresses(), showcase);
    for (const [address, path] of sampled([...pages], pagesChecked.withoutRole)) {
      await tab.go(path);
      await tab.settled();
      const buttons = (await tab.page.evaluate(badButtons)) as { name: string; isDead: boolean }[];
      for (const { name, isDead } of buttons)
        if ((isDead && !idle.test(name)) || adminActions.test(name)) faults.push(`${address}: ${name}`);
      if ((await tab.page.getByRole('heading', { level: 1 }).count()) !== 1) faults.push(`${address}: no heading`);
    }
    expect(faults).toEqual([]);
    expect(tab.watch.faults).toEqual([]);

    // The windows in the calendar open a form only for admins.
    await tab.go('/windows');
    const calendar = tab.page.getByRole('table', { name: 'Calendar' });
    await calendar.getByText('PostgreSQL 16').first().waitFor();
    expect(await calendar.getByRole('button').count()).toBe(0);
    // The page explains what only admins may do.
    for (const [path, text] of explained) {
      await tab.go(path);
      await tab.page.getByText(text).first().waitFor();
    }
    await tab.go(`/terminals/${showcase.recording}`);
    await tab.page.getByText('Only the operator who opened it and admins can watch or replay it.').waitFor();
  });
});
