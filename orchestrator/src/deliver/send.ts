import { lookup as resolve } from 'node:dns';
import { request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { hostOf } from '../domain/notifications/channel-config.ts';
import type { Attempt } from '../domain/notifications/delivery.ts';
import { mayReach } from '../domain/notifications/network-address.ts';

/** Sends a POST to a configured address: limited in time and size, and only to allowed addresses. */

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A post whose body may be binary. */
export type AnyPost = Omit<Post, 'body'> & { readonly body: string | Uint8Array };

export interface SendLimits {
  readonly timeoutMs: number;
  readonly denyPrivate: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Maximum bytes of a refusal that are read as its reason; none by default. */
  readonly reasonBytes?: number | undefined;
  /** For tests: replaces the system's resolver. */
  readonly resolve?: typeof resolve | undefined;
}

class Refused extends Error {}

/**
 * Resolves a name and filters its addresses. The connection itself calls this function, so the checked address is the
 * address that it uses, even if the name resolves to another one later.
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

/** Maximum header bytes of an answer. */
const maxHeaderBytes = 16_384;
/** Bytes of an unread response body to drain before closing, so that the peer is not reset. */
const maxDrainBytes = 16_384;
const maxDrainMs = 1_000;

/** Sends a post once and returns the outcome; never rejects. Does not follow redirects. */
export function send(post: AnyPost, limits: SendLimits): Promise<Attempt> {
  return attempt(post, limits).catch((error: Error) => ({ status: null, reason: reasonOf(error) }));
}

function attempt(post: AnyPost, limits: SendLimits): Promise<Attempt> {
  return new Promise((settle) => {
    const url = new URL(post.url);
    const host = hostOf(url);
    if (limits.signal?.aborted) return settle({ status: null, reason: 'it was cancelled' });
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      return settle({ status: null, reason: 'only http and https are supported' });
    // Node connects to IP addresses without a lookup, so they are checked here.
    if (isIP(host) !== 0 && !mayReach(host, limits))
      return settle({ status: null, reason: `${host} is a blocked address` });

    const end = (outcome: Attempt) => {
      clearTimeout(deadline);
      limits.signal?.removeEventListener('abort', abort);
      settle(outcome);
    };
    /** Settles with the status of the answer, once its headers have arrived. */
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
        const wanted = status < 300 ? 0 : (limits.reasonBytes ?? 0);
        let text = '';
        answered = () =>
          end({
            status,
            retryAfterMs: retryAfter(response.headers['retry-after'], Date.now()),
            ...(text === '' ? {} : { text: text.slice(0, wanted) }),
          });
        if (wanted === 0) answered();
        // Only the status is needed. Drains a bounded part of the body.
        let left = maxDrainBytes;
        response.on('data', (piece: Buffer) => {
          if (text.length < wanted) text += piece.toString('latin1', 0, wanted);
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
    const abort = () => request.destroy(new Refused('it was cancelled'));
    limits.signal?.addEventListener('abort', abort, { once: true });
    const deadline = setTimeout(
      () => request.destroy(new Refused(`no answer within ${Math.ceil(limits.timeoutMs / 1000)} seconds`)),
      limits.timeoutMs,
    );
    request.on('error', (error) => (answered ? answered() : end({ status: null, reason: reasonOf(error) })));
    // The peer may also close the connection without an answer.
    request.on('close', () =>
      answered ? answered() : end({ status: null, reason: 'the connection ended without an answer' }),
    );
    request.end(post.body);
  });
}

/** The reason of a failure. Reveals no part of the URL except its host. */
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
      if (code?.startsWith('HPE_')) return 'the answer is not HTTP';
      if (code && /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code)) return `its certificate was refused (${code})`;
      return `it failed (${code ?? error.name})`;
  }
}

/** Milliseconds of a Retry-After header; null when it is neither seconds nor a date. */
export function retryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  if (/^\d{1,9}(\.\d{1,6})?$/.test(value)) return Math.ceil(Number(value) * 1000);
  // Accepts only the current HTTP date format, because Date.parse accepts almost any text.
  const at = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
