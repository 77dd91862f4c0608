import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import { endSession, listSessions, webLogin } from '@muster/protocol/http';
import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { root } from '../../tools/suite/cli.ts';
import { eventually } from '../eventually.ts';
import type { Orchestrator } from '../stage.ts';
import { PageWatch } from './watch.ts';

/** Directory for traces, screenshots, and logs of failed tests. */
const failures = join(root, '.cache/browser-failures');

/**
 * Whether to record a trace of each test for Playwright's trace viewer. The trace stores a snapshot of the page at each
 * action, which takes longer than the actions.
 */
const isTraced = process.env.MUSTER_TRACE !== undefined;

/** A browser tab with an orchestrator's console. Records errors on the page. */
export class Tab {
  readonly page: Page;
  readonly watch: PageWatch;
  readonly #context: BrowserContext;
  readonly #orchestrator: Orchestrator;

  private constructor(context: BrowserContext, page: Page, watch: PageWatch, orchestrator: Orchestrator) {
    this.#context = context;
    this.page = page;
    this.watch = watch;
    this.#orchestrator = orchestrator;
  }

  get url(): string {
    return this.#orchestrator.url;
  }

  static async open(browser: Browser, orchestrator: Orchestrator, options: BrowserContextOptions = {}): Promise<Tab> {
    const context = await browser.newContext({
      ignoreHTTPSErrors: true,
      viewport: { width: 1280, height: 800 },
      reducedMotion: 'reduce',
      ...options,
    });
    // Milliseconds. Only actions that hang reach this limit, because the machine may be busy.
    context.setDefaultTimeout(300_000);
    if (isTraced) await context.tracing.start({ snapshots: true });
    const page = await context.newPage();
    const watch = await PageWatch.start(page, () => orchestrator.url);
    return new Tab(context, page, watch, orchestrator);
  }

  /**
   * Opens a page with a one-time sign-in link, and confirms the sign-in by keyboard.
   * @param call the operator's client
   */
  async signIn(path = '/', call: Client = this.#orchestrator.call): Promise<void> {
    const { url } = await call(webLogin, {});
    await this.page.goto(`${this.#orchestrator.url}${path}${new URL(url).hash}`);
    await this.page.getByRole('heading', { name: /^Sign in as .+\?$/ }).waitFor();
    await this.press('Tab', this.page.getByRole('button', { name: 'Sign in', exact: true }));
    await this.page.keyboard.press('Enter');
    await this.page.getByRole('button', { name: 'Search or go to' }).waitFor();
  }

  /** Navigates within the console without reloading it. */
  async go(path: string): Promise<void> {
    await this.page.evaluate(`__TSR_ROUTER__.history.push(${JSON.stringify(path)})`);
  }

  /** Returns the addresses of all pages in the console's router, with parameters as `$name`. */
  async addresses(): Promise<string[]> {
    return (await this.page.evaluate('Object.keys(__TSR_ROUTER__.routesByPath)')) as string[];
  }

  /** Ends the newest console session on the orchestrator from another session of the same operator. */
  async endSession(): Promise<void> {
    const { call } = this.#orchestrator;
    this.watch.expects(/^answered 401: /, /^console: .* status of 401 /);
    const newest = (await call(listSessions, {})).find(({ kind }) => kind === 'console');
    if (newest === undefined) throw new Error('there is no console session');
    await call(endSession, { params: { id: newest.id } });
  }

  /** Resolves when no request is pending and the page shows no placeholder. */
  async settled(): Promise<void> {
    await this.watch.quiet();
    // Polls, because the page's content security policy blocks `waitForFunction`.
    await eventually('the page shows no placeholder', async () =>
      (await this.page.evaluate("document.querySelector('[data-skeleton], [aria-busy=true]') === null")) ? true : null,
    );
    await this.watch.quiet();
  }

  /** Resolves when the page shows the fonts that the console ships, which are loaded after its first paint. */
  async fontsShown(): Promise<void> {
    const shown = "document.documentElement.dataset.fonts === '' && document.fonts.status === 'loaded'";
    await eventually('the fonts are loaded', async () => ((await this.page.evaluate(shown)) ? true : null));
  }

  /** Presses a key until an element has the focus, as an operator without a mouse does. */
  async press(key: string, until: Locator, maxPresses = 40): Promise<void> {
    for (let pressed = 0; pressed < maxPresses; pressed++) {
      if (await until.evaluate((element) => element === element.ownerDocument.activeElement)) return;
      await this.page.keyboard.press(key);
    }
    throw new Error(`${until} does not have the focus after pressing ${key} ${maxPresses} times`);
  }

  /** Opens another tab in the same browser. */
  async another(): Promise<Page> {
    return await this.#context.newPage();
  }

  /** Saves the report, the screenshot of the page, and the trace, if there is one, of a failed test. */
  async keep(test: string, report: string): Promise<void> {
    const folder = join(failures, test.replaceAll(/[^\w]+/g, '-').slice(0, 100));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'report.txt'), `${this.watch.faults.join('\n')}\n\n${report}`);
    await this.page.screenshot({ path: join(folder, 'page.png'), timeout: 5000 }).catch(() => {});
    if (isTraced) await this.#context.tracing.stop({ path: join(folder, 'trace.zip') }).catch(() => {});
    const text = await this.page
      .locator('body')
      .innerText({ timeout: 5000 })
      .catch(() => '');
    console.error(`the page shows:\n${text.slice(0, 3000)}`);
    console.error(`the report and the screenshot of the failed test are in ${folder}; MUSTER_TRACE=1 adds a trace`);
  }

  async close(): Promise<void> {
    await this.#context.close();
  }
}
