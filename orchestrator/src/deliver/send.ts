import { lookup as resolve } from 'node:dns';
import { request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { hostOf } from '../domain/notifications/channel-config.ts';
import type { Attempt } from '../domain/notifications/delivery.ts';
import { mayReach } from '../domain/notifications/network-address.ts';

/** Sends a POST to a configured URL, with limits on time and size, and only to allowed addresses. */

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A POST whose body may be binary. */
export type AnyPost = Omit<Post, 'body'> & { readonly body: string | Uint8Array };

export interface SendLimits {
  readonly timeoutMs: number;
  readonly denyPrivate: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Maximum number of bytes to read from an error response as the reason. The default is 0. */
  readonly reasonBytes?: number | undefined;
  /** Replaces the system resolver in tests. */
  readonly resolve?: typeof resolve | undefined;
}

class Refused extends Error {}

/**
 * Returns a lookup that omits blocked addresses. The socket calls this lookup, so it connects to a checked address even
 * if the name resolves to a different address afterward (DNS rebinding).
 */
export function guardedLookup(rule: { denyPrivate: boolean }, by: typeof resolve = resolve): LookupFunction {
  return (hostname, options, callback) => {
    by(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '');
      const allowed = found.filter(({ address }) => mayReach(address, rule));
      const [first] = allowed;
      if (!first) return callback(new Refused(`${hostname} resolves to a blocked address`), '');
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

const maxHeaderBytes = 16_384;
/**
 * Maximum number of bytes of an unread body to drain before the connection is closed. Closing it earlier would reset
 * it.
 */
const maxDrainBytes = 16_384;
const maxDrainMs = 1_000;

/** Sends a POST once. Does not follow redirects. @returns the outcome; never rejects */
export function send(post: AnyPost, limits: SendLimits): Promise<Attempt> {
  return attempt(post, limits).catch((error: Error) => ({ status: null, reason: reasonOf(error) }));
}

function attempt(post: AnyPost, limits: SendLimits): Promise<Attempt> {
  return new Promise((finish) => {
    const url = new URL(post.url);
    const host = hostOf(url);
    if (limits.signal?.aborted) return finish({ status: null, reason: 'the request was canceled' });
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      return finish({ status: null, reason: 'only http and https are supported' });
    // Node does not call the lookup for IP addresses.
    if (isIP(host) !== 0 && !mayReach(host, limits))
      return finish({ status: null, reason: `${host} is a blocked address` });

    const end = (outcome: Attempt) => {
      clearTimeout(deadline);
      limits.signal?.removeEventListener('abort', abort);
      finish(outcome);
    };
    /** Resolves the promise with the response status. Null until the headers have arrived. */
    let answered: (() => void) | null = null;
    const { username, password } = url;
    const credentials = [username, password].map(decodeURIComponent).join(':');
    const request = (url.protocol === 'https:' ? requestSecure : requestPlain)(
      {
        host,
        port: url.port === '' ? undefined : Number(url.port),
        path: `${url.pathname}${url.search}`,
        method: 'POST',
        headers: {
          ...(username === '' && password === ''
            ? {}
            : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
          ...post.headers,
          host: url.host,
          'content-length': Buffer.byteLength(post.body),
          connection: 'close',
        },
        agent: false,
        lookup: guardedLookup(limits, limits.resolve),
        maxHeaderSize: maxHeaderBytes,
        ...(url.protocol === 'https:' && isIP(host) === 0 ? { servername: host } : {}),
      },
      (response) => {
        const status = response.statusCode ?? 0;
        const maxLength = status < 300 ? 0 : (limits.reasonBytes ?? 0);
        let text = '';
        answered = () =>
          end({
            status,
            retryAfterMs: retryAfter(response.headers['retry-after'], Date.now()),
            ...(text === '' ? {} : { text: text.slice(0, maxLength) }),
          });
        if (maxLength === 0) answered();
        // Drains a bounded part of the unused body.
        let left = maxDrainBytes;
        response.on('data', (piece: Buffer) => {
          if (text.length < maxLength) text += piece.toString('latin1', 0, maxLength);
          left -= piece.length;
          if (left < 0) request.destroy();
        });
        response.on('error', () => {});
        const enough = setTimeout(() => request.destroy(), maxDrainMs);
        enough.unref();
        response.on('close', () => clearTimeout(enough));
        response.on('end', answered);
      },
    );
    const abort = () => request.destroy(new Refused('the request was canceled'));
    limits.signal?.addEventListener('abort', abort, { once: true });
    const deadline = setTimeout(
      () => request.destroy(new Refused(`no answer within ${Math.ceil(limits.timeoutMs / 1000)} seconds`)),
      limits.timeoutMs,
    );
    request.on('error', (error) => (answered ? answered() : end({ status: null, reason: reasonOf(error) })));
    // The peer may close the connection without a response or an error.
    request.on('close', () =>
      answered ? answered() : end({ status: null, reason: 'the connection was closed without a response' }),
    );
    request.end(post.body);
  });
}

/** Returns the reason for a failure, which reveals no part of the URL except the host. */
function reasonOf(error: Error): string {
  if (error instanceof Refused) return error.message;
  const { code, hostname } = error as NodeJS.ErrnoException & { hostname?: string };
  const [first] = error instanceof AggregateError ? error.errors : [];
  if (first instanceof Error) return reasonOf(first);
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the name ${hostname ?? ''} could not be resolved`;
    case 'ECONNREFUSED':
      return 'the connection was refused';
    case 'ECONNRESET':
    case 'EPIPE':
      return 'the connection was reset';
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ETIMEDOUT':
      return 'the server could not be reached';
    default:
      if (code?.startsWith('HPE_')) return 'the response is not HTTP';
      if (code && /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code)) return `the TLS connection failed (${code})`;
      return `the request failed (${code ?? error.name})`;
  }
}

/** Returns the delay in a Retry-After header in milliseconds; null if it is neither seconds nor a date. */
export function retryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  if (/^\d{1,9}(\.\d{1,6})?$/.test(value)) return Math.ceil(Number(value) * 1000);
  // Accepts only the IMF-fixdate format, because Date.parse accepts almost any text.
  const at = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
