import type { KeyObject } from 'node:crypto';
import { HostFailure } from '../../host/failure.ts';
import { HttpFailure, type HttpReply, httpCall } from '../../host/network/http-get.ts';
import type { Machine } from '../provider/provider.ts';
import { type ExternalAccount, externalBinding, signedRequest } from './jws.ts';

/** Sends requests to a certificate authority over ACME (RFC 8555). Does not trust its responses. */

/** Maximum size of a response, in bytes. */
const maxAnswerBytes = 256 * 1024;
/** Timeout of one request, in milliseconds. */
const requestMs = 60_000;
/** Milliseconds within which the last request must begin, not counting the run time of scripts. */
const issueMs = 10 * 60_000;
/** Maximum number of attempts of a request if the authority rejects its nonces. */
const maxNonces = 4;
/** Maximum length of the authority's text in a message, in characters. */
const maxWords = 500;

/** The members of a JSON response, which are unchecked. */
type Answer = Readonly<Record<string, unknown>>;

export interface Reply {
  answer: Answer;
  /** URL of the created object. */
  location: string | null;
  /** The body of the response as text. */
  text: string;
  /** Seconds after which to retry or poll again; null if the authority does not specify this. */
  retryAfter: number | null;
}

/** The authority refused a request. */
export class Refused extends HostFailure {
  readonly status: number;
  /** The last part of the problem type, such as `rateLimited`. */
  readonly type: string;

  constructor(message: string, status: number, type: string) {
    super(message);
    this.status = status;
    this.type = type;
  }
}

/**
 * Returns the value of a field of a response if it is text; otherwise an empty string. `String` would throw for some
 * values, such as an object with its own `toString`.
 */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Returns the authority's text for a message, truncated and in printable ASCII. */
const shownWords = (words: unknown): string =>
  typeof words === 'string'
    ? words
        .slice(0, 4 * maxWords)
        .replace(/[^\x20-\x7e]+/g, ' ')
        .trim()
        .slice(0, maxWords)
    : '';

/** Returns the detail of a problem document (RFC 9457), with those of its subproblems. */
export function problemWords(problem: unknown): string {
  if (problem === null || typeof problem !== 'object') return '';
  const { type, detail, subproblems } = problem as Answer;
  const parts = Array.isArray(subproblems) ? subproblems.slice(0, 5) : [];
  const details = [detail, ...parts.map((part) => (part as Answer | null)?.detail)].map(shownWords).filter(Boolean);
  const shown = [...new Set(details)].join('; ').slice(0, maxWords) || 'no reason given';
  const kind = problemType(type);
  return kind === '' ? shown : `${shown} (${kind})`;
}

const problemType = (type: unknown): string =>
  /^urn:ietf:params:acme:error:([A-Za-z]{1,60})$/.exec(textOf(type))?.[1] ?? '';

function parsed(text: string): Answer {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === 'object' && !Array.isArray(value)) return value as Answer;
  } catch {
    // Treated as a response without members.
  }
  return {};
}

const headerOf = ({ headers }: HttpReply, name: string): string | null => {
  const value = headers[name];
  return typeof value === 'string' && value.length <= 2000 ? value : null;
};

/** Returns the seconds that Retry-After specifies as a number or a date; null if it is missing or invalid. */
function retryAfterOf(reply: HttpReply, now: number): number | null {
  const text = headerOf(reply, 'retry-after');
  if (text === null) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000));
}

type Calls = Pick<Machine, 'clock' | 'environment' | 'stop' | 'cancelled'>;

export class Authority {
  readonly #machine: Calls;
  readonly #directory: URL;
  readonly key: KeyObject;
  #account: string | null = null;
  #nonce: string | null = null;
  #urls: Answer = {};
  /** In milliseconds of the monotonic clock. */
  #deadline: number;

  /** @param directory an https URL, or an http URL on this machine */
  constructor(directory: string, key: KeyObject, machine: Calls) {
    this.#directory = new URL(directory);
    this.key = key;
    this.#machine = machine;
    this.#deadline = machine.clock.monotonic() + issueMs;
  }

  /** Whether the time limit for all requests has expired. */
  get isLate(): boolean {
    return this.#machine.clock.monotonic() >= this.#deadline;
  }

  /**
   * Runs an action whose duration does not count toward the time limit, such as a script that waits for name servers.
   */
  async uncounted<T>(action: () => Promise<T>): Promise<T> {
    const began = this.#machine.clock.monotonic();
    try {
      return await action();
    } finally {
      this.#deadline += this.#machine.clock.monotonic() - began;
    }
  }

  /** Name of the authority for messages. */
  get host(): string {
    return this.#directory.host;
  }

  /**
   * Signs in, and creates the account if it does not exist.
   * @param external the account to bind a new account to; null if the authority requires none
   * @throws HostFailure
   */
  async signIn(email: string | null, external: ExternalAccount | null): Promise<void> {
    const reply = await this.#call('read the directory', { method: 'GET', url: this.#directory.href });
    if (reply.status !== 200)
      throw new HostFailure(
        `${this.#directory.href} answers ${reply.status}: set \`directory\` to the directory URL of an ACME server`,
      );
    this.#urls = parsed(reply.body.toString('utf8'));
    const contact = email === null ? [] : [`mailto:${email}`];
    const url = this.#urlIn(this.#urls, 'newAccount');
    const { location, answer } = await this.#signed('open an account', url, {
      termsOfServiceAgreed: true,
      contact,
      ...(external === null ? {} : { externalAccountBinding: externalBinding(external, this.key, url) }),
    });
    if (location === null) throw this.#wrong('opened an account without a URL');
    this.#account = location;
    const known = Array.isArray(answer.contact) ? answer.contact : null;
    if (known !== null && email !== null && !known.includes(contact[0]))
      await this.#signed('change the address of the account', location, { contact });
  }

  /** @param doing completes "refuses to …" */
  post(doing: string, url: string, payload: object | null, accept?: string): Promise<Reply> {
    return this.#signed(doing, url, payload, accept);
  }

  newOrder(domains: readonly string[]): Promise<Reply> {
    const identifiers = domains.map((value) => ({ type: 'dns', value }));
    return this.#signed('accept the order', this.#urlIn(this.#urls, 'newOrder'), { identifiers });
  }

  revoke(certificate: Buffer): Promise<Reply> {
    return this.#signed('revoke the certificate', this.#urlIn(this.#urls, 'revokeCert'), {
      certificate: certificate.toString('base64url'),
    });
  }

  /** Returns a URL in a response. @throws HostFailure if the URL is missing or belongs to another server */
  urlIn(answer: Answer, name: string): string {
    return this.#urlIn(answer, name);
  }

  #urlIn(answer: Answer, name: string): string {
    const value = Object.hasOwn(answer, name) ? answer[name] : undefined;
    if (typeof value !== 'string') throw this.#wrong(`answers without ${name}`);
    return this.checkUrl(value);
  }

  /** @throws HostFailure if a URL does not belong to this server */
  checkUrl(text: string): string {
    const url = text.length <= 2000 ? URL.parse(text) : null;
    if (url === null || url.origin !== this.#directory.origin || url.username !== '' || url.password !== '')
      throw this.#wrong('names a URL of another server, which is not requested');
    return url.href;
  }

  #wrong(what: string): HostFailure {
    return new HostFailure(`the certificate authority ${this.host} ${what}`);
  }

  async #signed(doing: string, url: string, payload: object | null, accept?: string): Promise<Reply> {
    for (let attempt = 1; ; attempt++) {
      const nonce = await this.#freshNonce();
      const body = signedRequest({ key: this.key, account: this.#account, nonce, url }, payload);
      const headers = { 'content-type': 'application/jose+json', ...(accept === undefined ? {} : { accept }) };
      const reply = await this.#call(doing, { method: 'POST', url, headers, body });
      const text = reply.body.toString('utf8');
      const answer = parsed(text);
      const retryAfter = retryAfterOf(reply, this.#machine.clock.now());
      if (reply.status >= 200 && reply.status < 300) {
        const location = headerOf(reply, 'location');
        return { answer, text, retryAfter, location: location === null ? null : this.checkUrl(location) };
      }
      const type = problemType(answer.type);
      if (type === 'badNonce' && attempt < maxNonces) continue;
      throw this.#refusal(doing, reply.status, type, answer, retryAfter);
    }
  }

  #refusal(doing: string, status: number, type: string, answer: Answer, retryAfter: number | null): Refused {
    const words = problemWords(answer);
    if (type === 'rateLimited' || status === 429) {
      const later = retryAfter === null ? 'later' : `after ${Math.ceil(retryAfter / 60)} minutes`;
      return new Refused(
        `${this.host} accepts no more requests for now: ${words}. Apply again ${later}.`,
        status,
        type,
      );
    }
    if (type === 'externalAccountRequired')
      return new Refused(
        `${this.host} accepts only accounts that were opened there beforehand: declare \`eab_key_id\` and \`eab_hmac_key\`: ${words}`,
        status,
        type,
      );
    return new Refused(`${this.host} refuses to ${doing} with ${status}: ${words}`, status, type);
  }

  async #freshNonce(): Promise<string> {
    const known = this.#nonce;
    this.#nonce = null;
    if (known !== null) return known;
    await this.#call('request a nonce', { method: 'HEAD', url: this.#urlIn(this.#urls, 'newNonce') });
    const nonce = this.#nonce as string | null;
    this.#nonce = null;
    if (nonce === null) throw this.#wrong('did not send a nonce');
    return nonce;
  }

  async #call(
    doing: string,
    call: { method: 'GET' | 'HEAD' | 'POST'; url: string; headers?: Record<string, string>; body?: string },
  ): Promise<HttpReply> {
    const { clock, environment, stop, cancelled } = this.#machine;
    if (cancelled()) throw new HostFailure('the operation was canceled before the certificate existed');
    stop.throwIfAborted();
    if (this.isLate) throw this.#wrong(`takes more than ${issueMs / 60_000} minutes; apply again to continue`);
    const ended = new AbortController();
    const giveUp = clock.after(requestMs, () => ended.abort());
    try {
      const signal = AbortSignal.any([stop, ended.signal]);
      const reply = await httpCall({ headers: {}, ...call, environment, limit: maxAnswerBytes, signal });
      const nonce = headerOf(reply, 'replay-nonce');
      if (nonce !== null && /^[A-Za-z0-9_-]{1,500}$/.test(nonce)) this.#nonce = nonce;
      return reply;
    } catch (error) {
      stop.throwIfAborted();
      if (!(error instanceof HttpFailure)) throw error;
      const why = ended.signal.aborted ? `no answer after ${requestMs / 1000} s` : error.message;
      throw new HostFailure(`cannot reach the certificate authority ${this.host} to ${doing}: ${why}`);
    } finally {
      giveUp();
    }
  }
}
