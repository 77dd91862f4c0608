import { setTimeout as sleep } from 'node:timers/promises';
import type { CDPSession, Page, Request } from 'playwright-core';

/** A second request for the same URL within this time is a fault, unless news came that may have changed the answer. */
const doubleFetchSecs = 1;
/** A page on a busy machine may handle news this long after the browser received it. */
const busySecs = 5;
/** A page is quiet when it sends no request for this long after the last answer. */
const quietMs = 60;
/** Test hosts add and remove network interfaces of this machine; Chromium then cuts the requests in flight. */
const networkChanged = 'net::ERR_NETWORK_CHANGED';
const streamPath = '/api/v1/events';

export class PageWatch {
  readonly #faults: string[] = [];
  readonly #expected: RegExp[] = [];
  readonly #origin: () => string;
  /** When each URL was last requested, in seconds of the browser's clock. */
  readonly #fetched = new Map<string, number>();
  readonly #underWay = new Set<Request>();
  #endedAt = 0;
  readonly #streams = new Set<string>();

  private constructor(origin: () => string) {
    this.#origin = origin;
  }

  /** @param origin of the orchestrator; a request to another origin is a fault */
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
      // The console repeats a request that was cut.
      if (reason === networkChanged) return;
      // The page aborted the request itself, by navigating away.
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

  /** Allows faults that match: the test causes them. */
  expects(...faults: readonly RegExp[]): void {
    this.#expected.push(...faults);
  }

  get faults(): string[] {
    return this.#faults.filter((fault) => !this.#expected.some((expected) => expected.test(fault)));
  }

  /** Resolves when no request but the event stream has been in flight for `quietMs`. */
  async quiet(): Promise<void> {
    while (this.#underWay.size > 0 || performance.now() - this.#endedAt < quietMs) await sleep(20);
  }

  #fault(text: string): void {
    this.#faults.push(text);
  }

  /**
   * Each chunk of the event stream and each write may change earlier answers, so the page may fetch them again.
   * Uses the browser's clock: on a busy machine its events arrive here late and in bursts.
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
    // The console repeats a request that was cut.
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
