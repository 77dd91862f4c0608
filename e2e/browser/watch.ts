import { setTimeout as sleep } from 'node:timers/promises';
import type { CDPSession, Page, Request } from 'playwright-core';

/** What a page must not do, seen from outside it. */

/** The same answer asked for twice within this, with nothing that might have changed it, is a fetch too many. */
const doubleFetchSecs = 1;
/** News may have come to the browser so long before the page, which is busy, is told. */
const busySecs = 0.5;
/** So long after the last answer nothing more is asked for. */
const quietMs = 60;
/** Test hosts come and go on this machine, and with each of their interfaces Chromium cuts what is under way. */
const networkChanged = 'net::ERR_NETWORK_CHANGED';
const streamPath = '/api/v1/events';

export class PageWatch {
  readonly #faults: string[] = [];
  readonly #expected: RegExp[] = [];
  readonly #origin: () => string;
  /** When each address was last asked for. */
  readonly #fetched = new Map<string, number>();
  readonly #underWay = new Set<Request>();
  #endedAt = 0;
  readonly #streams = new Set<string>();

  private constructor(origin: () => string) {
    this.#origin = origin;
  }

  /** @param origin of the orchestrator: whatever asks another is at fault */
  static async start(page: Page, origin: () => string): Promise<PageWatch> {
    const watch = new PageWatch(origin);
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().includes(networkChanged))
        watch.#fault(`console: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => watch.#fault(`uncaught: ${error.stack ?? error.message}`));
    page.on('request', (request) => watch.#asked(request));
    const ended = (request: Request) => {
      watch.#underWay.delete(request);
      watch.#endedAt = performance.now();
    };
    page.on('requestfinished', ended);
    page.on('requestfailed', (request) => {
      ended(request);
      const reason = request.failure()?.errorText ?? '';
      // What was cut is asked for again.
      if (reason === networkChanged) return;
      // The page itself gave it up: it went elsewhere.
      if (reason !== 'net::ERR_ABORTED') watch.#fault(`failed: ${request.method()} ${request.url()}: ${reason}`);
    });
    page.on('response', (response) => {
      const request = response.request();
      if (response.status() >= 400) watch.#fault(`answered ${response.status()}: ${request.method()} ${request.url()}`);
    });
    page.on('framenavigated', (frame) => {
      if (frame === page.mainFrame()) watch.#fetched.clear();
    });
    await page.addInitScript(`
      addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
        console.error('against the policy: ' + violatedDirective + ' ' + blockedURI + ' ' + sample));
    `);
    await watch.#watchFetches(await page.context().newCDPSession(page));
    return watch;
  }

  /** From now on this may happen: the test makes it so. */
  expects(...faults: readonly RegExp[]): void {
    this.#expected.push(...faults);
  }

  get faults(): string[] {
    return this.#faults.filter((fault) => !this.#expected.some((expected) => expected.test(fault)));
  }

  /** Resolves when nothing has been under way for a moment, but for the stream. */
  async quiet(): Promise<void> {
    while (this.#underWay.size > 0 || performance.now() - this.#endedAt < quietMs) await sleep(20);
  }

  #fault(text: string): void {
    this.#faults.push(text);
  }

  /**
   * Each piece of the event stream may be news, and so may whatever the page sends; what was asked for before is then
   * asked for again, and what was asked for after it is not. By the browser's own clock: what it tells comes here late, and many at once, when the machine is busy.
   */
  async #watchFetches(session: CDPSession): Promise<void> {
    const writes = new Set<string>();
    let newsAt = 0;
    session.on('Network.requestWillBeSent', ({ requestId, request: { method, url }, timestamp }) => {
      const { pathname } = new URL(url);
      if (pathname === streamPath) this.#streams.add(requestId);
      else if (method !== 'GET') writes.add(requestId);
      else if (pathname.startsWith('/api/')) {
        const before = this.#fetched.get(url);
        this.#fetched.set(url, timestamp);
        if (before !== undefined && timestamp - before < doubleFetchSecs && newsAt < before - busySecs)
          this.#fault(`asked twice within ${Math.round((timestamp - before) * 1000)} ms: ${url}`);
      }
    });
    session.on('Network.dataReceived', ({ requestId, timestamp }) => {
      if (this.#streams.has(requestId)) newsAt = timestamp;
    });
    session.on('Network.responseReceived', ({ requestId, timestamp }) => {
      if (writes.has(requestId)) newsAt = timestamp;
    });
    // What is cut is asked for again.
    session.on('Network.loadingFailed', ({ timestamp }) => {
      newsAt = timestamp;
    });
    for (const event of ['Network.webSocketHandshakeResponseReceived', 'Network.webSocketFrameReceived'] as const)
      session.on(event, ({ timestamp }: { timestamp: number }) => {
        newsAt = timestamp;
      });
    await session.send('Network.enable');
  }

  #asked(request: Request): void {
    const url = request.url();
    if (/^(data|blob):/.test(url)) return;
    const { origin, pathname } = new URL(url);
    if (pathname !== streamPath) this.#underWay.add(request);
    if (origin !== this.#origin()) this.#fault(`asked another host: ${url}`);
  }
}
