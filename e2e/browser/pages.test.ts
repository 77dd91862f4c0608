import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect } from 'vitest';
import { builtConsole } from '../../tools/build/build-console.ts';
import { Showcase } from '../showcase/showcase.ts';
import { inBothThemes } from './accessible.ts';
import { pagesOf } from './pages.ts';
import type { Tab } from './tab.ts';
import { noBrowser, test } from './test.ts';

const reason = noBrowser();
/** Checks accessibility, heading, and title of each page. @returns errors by page; omits pages without errors */
async function walk(tab: Tab, pages: ReadonlyMap<string, string>): Promise<Record<string, string[]>> {
  const seen: Record<string, string[]> = {};
  for (const [address, path] of pages) {
    await tab.go(path);
    await tab.settled();
    // Checks the header and navigation only once, because they are the same on every page.
    const faults = await inBothThemes(tab, Object.keys(seen).length === 0 ? null : '#content');
    if ((await tab.page.getByRole('heading', { level: 1 }).count()) !== 1)
      faults.push('the page must have exactly one level-1 heading');
    if (!(await tab.page.title()).endsWith('Muster'))
      faults.push(`the title must end with "Muster": ${await tab.page.title()}`);
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

describe.skipIf(reason !== null)(`every page of the console${reason === null ? '' : ` (${reason})`}`, () => {
  test('console pages for an empty orchestrator have no axe violations', async ({ tab }) => {
    await tab.untraced();
    await tab.page.goto(tab.url);
    await tab.page.getByRole('button', { name: 'Open key file' }).waitFor();
    expect(await inBothThemes(tab, null)).toEqual([]);
    await tab.signIn();
    const addresses = (await tab.addresses()).filter((address) => !address.includes('$') && address !== '/login');
    expect(await walk(tab, new Map(addresses.map((address) => [address, address])))).toEqual({});
  });

  test('console pages for a fleet with data have no axe violations', async ({ tab, stage, orchestrator }) => {
    const showcase = await Showcase.open(stage, orchestrator);
    await tab.untraced();
    await tab.signIn();
    expect(await walk(tab, await pagesOf(await tab.addresses(), showcase))).toEqual({});

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
    await dialog.getByRole('button', { name: 'End the session' }).click();
    await page.getByRole('button', { name: 'Replay' }).waitFor();
    expect(await inBothThemes(tab, '#content')).toEqual([]);
    await showcase.end();
  });
});
