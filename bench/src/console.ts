import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { putTag, webLogin } from '@muster/protocol/http';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { openBrowser, openBrowserApart } from '../../e2e/browser/chromium.ts';
import { eventually } from '../../e2e/eventually.ts';
import { builtConsole } from '../../tools/build/build-console.ts';
import { seedAgents } from './load/seed-agents.ts';
import { conclude, type Measured } from './run/conclude.ts';
import { type Figure, notJudged } from './run/judge.ts';
import { benchOptions } from './run/options.ts';
import { printProgress } from './run/progress.ts';
import { median } from './run/quantiles.ts';
import { ratioLine, table } from './run/report.ts';
import { OrchestratorProcess } from './servers/orchestrator-process.ts';

/**
 * Measures the console in a real browser, with 10,000 agents in the database of a real orchestrator:
 *
 * - the time from when navigation to the agents page starts until its first rows are painted, until it reacts to a
 *   click, and until it has loaded and sorted all agents;
 * - the share of frames that are dropped while the page scrolls, compared with a static page that has as many rows;
 * - the number of compressed bytes that a browser loads before a page's code;
 * - memory growth under 50 events a second, measured after garbage collection.
 *
 *     node bench/src/console.ts [--agents 10000] [--rounds 3] [--minutes 10] [--rate 50] [--json]
 *
 * `npm run soak -- console` uses `--minutes 60`. `--minutes 0` omits the memory measurement.
 */
const options = benchOptions({ numbers: { agents: [10_000, 50], rounds: [3, 1], minutes: [10, 0], rate: [50, 50] } });
const { rounds } = options;
type Figures = Measured<'console'>['figures'];
const rowHeight = 38;
/** Milliseconds. Only actions that hang reach this limit; a page may take minutes on a busy machine. */
const hangMs = 300_000;
const rows = '[role=grid] [role=row] [role=gridcell]';
/** Matches the agent table once it has all rows. The header is a row too. */
const complete = `[role=grid][aria-rowcount="${options.agents + 1}"]:not([aria-busy])`;

/** Opens a console page in a new tab, and signs in. */
async function open(browser: Browser, orchestrator: OrchestratorProcess, path: string): Promise<Page> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(hangMs);
  const page = await context.newPage();
  await page.goto(`${orchestrator.url}${path}${await linkOf(orchestrator)}`);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  return page;
}

async function linkOf(orchestrator: OrchestratorProcess): Promise<string> {
  return new URL((await orchestrator.call(webLogin, {})).url).hash;
}

interface Opened {
  /** Milliseconds from the start of navigation until the rows are painted. */
  painted: number;
  /** Milliseconds from the start of navigation until the first frame after a click is painted. */
  answered: number;
  /** Milliseconds from the start of navigation until the table has all agents. */
  complete: number;
}

/** Maximum number of attempts to open a page. The browser may fail to reach the orchestrator on a very busy machine. */
const maxOpenings = 5;

/**
 * A script that runs in the page before all other scripts. It records when rows are painted, when a click has taken
 * effect, and when the table has all agents.
 */
const watchOpening = `
  let confirmed = false;
  const look = () => {
    // Confirms the sign-in as soon as the page asks for it.
    const yes = confirmed ? null : [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Sign in');
    if (yes) {
      confirmed = true;
      yes.click();
    }
    if (document.querySelectorAll(${JSON.stringify(rows)}).length < 10) return requestAnimationFrame(look);
    // The second frame starts after the browser has painted the rows.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      window.paintedAt = performance.now();
      const search = document.querySelector('main input, main [role=searchbox], main button');
      search.focus();
      search.click();
      requestAnimationFrame(() => requestAnimationFrame(() => { window.answeredAt = performance.now(); }));
    }));
    requestAnimationFrame(lookForAll);
  };
  const lookForAll = () => {
    if (document.querySelector(${JSON.stringify(complete)}) === null) requestAnimationFrame(lookForAll);
    else window.completeAt = performance.now();
  };
  if (window === top) requestAnimationFrame(look);
`;

/** Returns the times as soon as all are known, or the error that the sign-in page shows. */
const opened = `window.answeredAt !== undefined && window.completeAt !== undefined
  ? { painted: paintedAt, answered: answeredAt, complete: completeAt }
  : (document.querySelector('[role=alert]')?.textContent ?? null)`;

async function opening(browser: Browser, orchestrator: OrchestratorProcess): Promise<Opened> {
  for (let openings = 1; ; openings++) {
    const opened = await openOnce(browser, orchestrator);
    if (typeof opened !== 'string') return opened;
    if (openings === maxOpenings) throw new Error(`the agents page did not open: ${opened}`);
    console.log(`reopening the agents page: ${opened}`);
  }
}

/**
 * Opens the page in a new browser context.
 * @returns the times, or the error that the sign-in page shows
 */
async function openOnce(browser: Browser, orchestrator: OrchestratorProcess): Promise<Opened | string> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(hangMs);
  const page = await context.newPage();
  await page.addInitScript(watchOpening);
  await page.goto(`${orchestrator.url}/agents${await linkOf(orchestrator)}`, { waitUntil: 'commit' });
  const seen = await eventually(
    'the table has all agents after a click, or the sign-in has failed',
    () => page.evaluate(opened) as Promise<Opened | string | null>,
    hangMs,
  );
  await context.close();
  return seen;
}

/** Returns the milliseconds from the start of navigation until a static page's rows are painted in a new context. */
async function openStatic(browser: Browser, url: string): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  context.setDefaultTimeout(hangMs);
  const page = await context.newPage();
  await page.goto(url, { waitUntil: 'commit' });
  // The second frame starts after the browser has painted the rows.
  const painted = (await page.evaluate(`new Promise((resolve) => {
    const look = () =>
      document.readyState === 'complete'
        ? requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())))
        : requestAnimationFrame(look);
    look();
  })`)) as number;
  await context.close();
  return painted;
}

/**
 * A script that scrolls the largest scroll area for three seconds, one step each frame. Returns the share of dropped
 * frames and the height of the area in pixels.
 */
const scrolling = `new Promise((resolve) => {
  const all = [document.scrollingElement, ...document.querySelectorAll('*')];
  const longest = all.reduce((a, b) => (b.scrollHeight - b.clientHeight > a.scrollHeight - a.clientHeight ? b : a));
  const frame = 1000 / 60;
  const times = [];
  longest.scrollTop = 0;
  const step = (at) => {
    times.push(at);
    longest.scrollTop += 120;
    if (at - times[0] < 3000) requestAnimationFrame(step);
    else {
      const due = (times.at(-1) - times[0]) / frame;
      resolve({ dropped: Math.max(0, due - (times.length - 1)) / due, height: longest.scrollHeight });
    }
  };
  requestAnimationFrame(step);
})`;

interface Scrolled {
  dropped: number;
  height: number;
}
const scroll = (page: Page) => page.evaluate(scrolling) as Promise<Scrolled>;

/** Serves a static page with one row for each agent. */
async function staticPage(count: number) {
  const text = Array.from({ length: count }, (_, row) => `<div>seeded-${row} <i>debian 12</i> <i>role=web</i></div>`);
  const style = `div { height: ${rowHeight}px; box-sizing: border-box; border-bottom: 1px solid #ccc; padding: 8px }`;
  const html = `<!doctype html><title>static</title><style>${style}</style>${text.join('\n')}`;
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close: () => server.close() };
}

/** Returns files and their compressed sizes. Runs in a page. */
const compressedSizes = async (paths: string[]) => {
  const sizes: [string, number][] = [];
  for (const path of paths) {
    const { body } = await fetch(path);
    const compressed = new Response(body?.pipeThrough(new CompressionStream('gzip')));
    sizes.push([path, (await compressed.arrayBuffer()).byteLength]);
  }
  return sizes;
};

/** Returns the compressed sizes of the files that a browser loads before sign-in, by path. */
async function firstLoad(browser: Browser, orchestrator: OrchestratorProcess): Promise<Map<string, number>> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  context.setDefaultTimeout(hangMs);
  const page = await context.newPage();
  const paths = new Set<string>();
  page.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (response.ok() && !pathname.startsWith('/api/')) paths.add(pathname);
  });
  await page.goto(orchestrator.url);
  await page.getByRole('button', { name: 'Open key file' }).waitFor();
  await page.waitForLoadState('networkidle');
  // The page requests the files again, because the browser may discard the content of a response before it is read.
  const sizes = (await page.evaluate(compressedSizes, [...paths])) as [string, number][];
  await context.close();
  return new Map(sizes);
}

/** Returns the size of the page's JavaScript heap after garbage collection, in bytes. */
async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  await session.send('HeapProfiler.collectGarbage');
  return (await session.send('Runtime.getHeapUsage')).usedSize;
}

interface Held {
  minute: number;
  bytes: number;
  nodes: number;
}

/**
 * Tags agents to cause events at the configured rate.
 * @returns the achieved events per second
 */
async function causeEvents(orchestrator: OrchestratorProcess, until: () => boolean): Promise<number> {
  const { rate } = options;
  const began = performance.now();
  let sent = 0;
  while (!until()) {
    const due = ((performance.now() - began) / 1000) * rate;
    if (sent >= due) await sleep(5);
    else {
      const node_id = (sent % options.agents).toString(16).padStart(32, '0');
      await orchestrator.call(putTag, { params: { node_id, key: 'round' }, body: { value: String(sent++) } });
    }
  }
  return sent / ((performance.now() - began) / 1000);
}

/** Measures the memory usage of pages in concurrent tabs under the same event load, by path. */
async function memory(
  browser: Browser,
  orchestrator: OrchestratorProcess,
  paths: readonly string[],
): Promise<Map<string, Held[]>> {
  const { minutes } = options;
  const tabs = await Promise.all(
    paths.map(async (path) => {
      const page = await open(browser, orchestrator, path);
      const session = await page.context().newCDPSession(page);
      await session.send('Performance.enable');
      return { path, page, session, held: [] as Held[] };
    }),
  );
  let over = false;
  const events = causeEvents(orchestrator, () => over);
  const began = performance.now();
  const step = Math.min(0.5, minutes / 10);
  while (performance.now() - began < minutes * 60_000) {
    await sleep(step * 60_000);
    printProgress(`${((performance.now() - began) / 60_000).toFixed(1)} of ${minutes} min under events`);
    for (const { session, held } of tabs) {
      const bytes = await heapOf(session);
      const { metrics } = await session.send('Performance.getMetrics');
      const nodes = metrics.find(({ name }) => name === 'Nodes')?.value ?? Number.NaN;
      held.push({ minute: (performance.now() - began) / 60_000, bytes, nodes });
    }
  }
  over = true;
  console.log(`${(await events).toFixed(1)} events a second for ${minutes} min`);
  for (const { page } of tabs) await page.context().close();
  return new Map(tabs.map(({ path, held }) => [path, held]));
}

async function measure(browser: Browser, orchestrator: OrchestratorProcess): Promise<Figures> {
  const sizes = await firstLoad(browser, orchestrator);
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  console.log(`${table(['file', 'bytes compressed'], [...sizes.entries()])}\n`);

  // From the second round on, the browser reuses compiled code, as on a repeated visit.
  const screenful = await staticPage(20);
  const opened: (Opened & { plain: number })[] = [];
  for (let round = 0; round < rounds; round++) {
    const plain = await openStatic(browser, screenful.url);
    opened.push({ ...(await opening(browser, orchestrator)), plain });
    printProgress(`agents page opened, round ${round + 1} of ${rounds}`);
  }
  screenful.close();
  console.log(
    `${table(
      ['agents page', 'rows painted ms', 'static page painted ms', 'click handled ms', 'all agents ms'],
      opened.map(({ painted, plain, answered, complete }, round) => [
        `round ${round + 1}`,
        painted,
        plain,
        answered,
        complete,
      ]),
    )}\n`,
  );

  const plain = await staticPage(options.agents);
  const page = await open(browser, orchestrator, '/agents');
  await page.locator(complete).waitFor();
  const other = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  other.setDefaultTimeout(hangMs);
  await other.goto(plain.url);
  const scrolled: { console: Scrolled; plain: Scrolled }[] = [];
  for (let round = 0; round < rounds; round++) {
    await other.bringToFront();
    const ofPlain = await scroll(other);
    await page.bringToFront();
    scrolled.push({ plain: ofPlain, console: await scroll(page) });
    printProgress(`scrolled, round ${round + 1} of ${rounds}`);
  }
  plain.close();
  console.log(
    `${table(
      ['scrolling', 'dropped %', 'dropped %, static page', 'height px', 'height px, static page'],
      scrolled.map(({ console, plain }, round) => [
        `round ${round + 1}`,
        console.dropped * 100,
        plain.dropped * 100,
        console.height,
        plain.height,
      ]),
    )}\n`,
  );
  const more = median(scrolled.map(({ console, plain }) => (console.dropped - plain.dropped) * 100));
  await page.context().close();
  await other.context().close();

  const heaps = options.minutes === 0 ? null : await memory(browser, orchestrator, ['/', '/agents']);
  const growthAt = (path: string): Figure =>
    heaps === null ? notJudged('omitted by --minutes 0') : heapGrowth(path, heaps.get(path)!);
  return {
    firstLoad: bytes / 1000,
    rows: median(opened.map(({ painted }) => painted)) / 1000,
    interactive: median(opened.map(({ answered }) => answered)) / 1000,
    dropped: Math.max(0, more),
    heapOverview: growthAt('/'),
    heapAgents: growthAt('/agents'),
  };
}

/**
 * Prints how a page's memory usage develops over time.
 * @returns the ratio of the last third to the first third
 */
function heapGrowth(path: string, held: readonly Held[]): number {
  console.log(
    `${table(
      [`minute at ${path}`, 'heap MB', 'DOM nodes'],
      held.map(({ minute, bytes, nodes }) => [minute, bytes / 1e6, nodes]),
    )}\n`,
  );
  // Omits the first tenth, in which caches fill.
  const settled = held.slice(Math.ceil(held.length / 10));
  const third = Math.max(1, Math.floor(settled.length / 3));
  const first = median(settled.slice(0, third).map(({ bytes }) => bytes));
  const last = median(settled.slice(-third).map(({ bytes }) => bytes));
  console.log(ratioLine(`heap at ${path}, last third compared with first third`, last / 1e6, first / 1e6, 'MB'));
  return last / first;
}

await builtConsole();
const orchestrator = await OrchestratorProcess.start({
  prepare: (dataDir) => seedAgents(dataDir, options.agents),
});
// The smoke run is concurrent with test hosts, whose network interfaces would abort the browser's requests.
const browser = await (options.smoke ? openBrowserApart() : openBrowser());
try {
  const figures = await measure(browser, orchestrator);
  const sizes = `${options.agents} agents, ${rounds} rounds, ${options.rate} events/s for ${options.minutes} min`;
  process.exitCode = conclude('console', { sizes, figures });
} finally {
  await browser.close();
  await orchestrator.stop();
}
