import { setTimeout as sleep } from 'node:timers/promises';
import type { Page, Request } from 'playwright-core';
import { FairTime } from '../../tools/suite/fair-time.ts';
import { reportRepeatedFetches } from './repeated-fetches.ts';

/** Milliseconds without a request after which a page counts as quiet. */
const quietMs = 60;
/** Milliseconds after which a page that always has a request in flight is an error. */
const maxBusyMs = 120_000;
/** Chromium aborts pending requests with this error when a test host adds or removes a network interface. */
const networkChanged = 'net::ERR_NETWORK_CHANGED';
const streamPath = '/api/v1/events';

export class PageWatch {
  readonly #faults: string[] = [];
  readonly #expected: RegExp[] = [];
  readonly #origin: () => string;
  readonly #underWay = new Set<Request>();
  #endedAt = 0;

  private constructor(origin: () => string) {
    this.#origin = origin;
  }

  /** @param origin returns the orchestrator's origin; a request to another origin is an error */
  static async start(page: Page, origin: () => string): Promise<PageWatch> {
    const watch = new PageWatch(origin);
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().includes(networkChanged))
        watch.#fault(`console: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => watch.#fault(`uncaught: ${error.stack ?? error.message}`));
    page.on('request', (request) => watch.#onRequest(request));
    const ended = (request: Request) => {
      watch.#underWay.delete(request);
      watch.#endedAt = performance.now();
    };
    page.on('requestfinished', ended);
    page.on('requestfailed', (request) => {
      ended(request);
      const reason = request.failure()?.errorText ?? '';
      // The console retries such a request, so this is not an error.
      if (reason === networkChanged) return;
      // ERR_ABORTED is not an error: the page aborted the request by navigating away.
      if (reason !== 'net::ERR_ABORTED') watch.#fault(`failed: ${request.method()} ${request.url()}: ${reason}`);
    });
    page.on('response', (response) => {
      const request = response.request();
      watch.#onResponse(request);
      if (response.status() >= 400) watch.#fault(`answered ${response.status()}: ${request.method()} ${request.url()}`);
    });
    await page.addInitScript(`
      addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
        console.error('content security policy violated: ' + violatedDirective + ' ' + blockedURI + ' ' + sample));
    `);
    await page.addInitScript(reportRepeatedFetches);
    return watch;
  }

  /** Ignores matching errors, which the test causes intentionally. */
  expects(...faults: readonly RegExp[]): void {
    this.#expected.push(...faults);
  }

  get faults(): string[] {
    return this.#faults.filter((fault) => !this.#expected.some((expected) => expected.test(fault)));
  }

  /**
   * Resolves when no request except the event stream has been in flight for `quietMs`.
   * @throws Error that names the requests in flight after `maxBusyMs`
   */
  async quiet(): Promise<void> {
    const time = new FairTime();
    while (this.#underWay.size > 0 || performance.now() - this.#endedAt < quietMs) {
      if (time.elapsedMs() > maxBusyMs)
        throw new Error(`requests did not end: ${[...this.#underWay].map((request) => request.url()).join(', ')}`);
      await sleep(20);
    }
  }

  #fault(text: string): void {
    this.#faults.push(text);
  }

  /**
   * Forgets the requests of a page that the response replaces. The page aborts them, and for those that
   * `page.route` intercepts, Chromium reports no end.
   */
  #onResponse(request: Request): void {
    if (request.isNavigationRequest() && request.frame().parentFrame() === null)
      for (const one of this.#underWay) if (one !== request) this.#underWay.delete(one);
  }

  #onRequest(request: Request): void {
    const url = request.url();
    if (/^(data|blob):/.test(url)) return;
    const { origin, pathname } = new URL(url);
    if (pathname !== streamPath) this.#underWay.add(request);
    if (origin !== this.#origin()) this.#fault(`request to another origin: ${url}`);
  }
}
