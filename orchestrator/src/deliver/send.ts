import { lookup as resolve } from 'node:dns';
import { request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { hostOf } from '../domain/notifications/channel-config.ts';
import type { Attempt } from '../domain/notifications/delivery.ts';
import { mayReach } from '../domain/notifications/network-address.ts';

/** One POST to an address that somebody has configured: bounded in time and size, and only to where it may go. */

export interface Post {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Also what is no text. */
export type AnyPost = Omit<Post, 'body'> & { readonly body: string | Uint8Array };

export interface SendLimits {
  readonly timeoutMs: number;
  readonly denyPrivate: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Of an answer that refuses, so many bytes are read as the reason; none by default. */
  readonly reasonBytes?: number | undefined;
  /** For tests: in the place of the system's resolver. */
  readonly resolve?: typeof resolve | undefined;
}

class Refused extends Error {}

/**
 * The addresses of a name that may be reached, asked for by the connection itself: what is checked here is what is
 * connected to, whatever the name resolves to a moment later.
 */
export function guardedLookup(rule: { denyPrivate: boolean }, by: typeof resolve = resolve): LookupFunction {
  return (hostname, options, callback) => {
    by(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '');
      const allowed = found.filter(({ address }) => mayReach(address, rule));
      const [first] = allowed;
      if (!first) return callback(new Refused(`${hostname} resolves to an address that nothing is sent to`), '');
      if (options.all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** Headers of an answer; more is refused. */
const maxHeaderBytes = 16_384;
/** Of the body that nobody reads, so much is let pass for the far end's sake before the connection is cut. */
const politeBytes = 16_384;
const politeMs = 1_000;

/** Sends it, once, and says how that went: never rejects. Redirects are answers like any other. */
export function send(post: AnyPost, limits: SendLimits): Promise<Attempt> {
  return attempt(post, limits).catch((error: Error) => ({ status: null, reason: reasonOf(error) }));
}

function attempt(post: AnyPost, limits: SendLimits): Promise<Attempt> {
  return new Promise((settle) => {
    const url = new URL(post.url);
    const host = hostOf(url);
    if (limits.signal?.aborted) return settle({ status: null, reason: 'it was called off' });
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      return settle({ status: null, reason: 'only http and https are spoken' });
    // No resolver is asked about an address.
    if (isIP(host) !== 0 && !mayReach(host, limits))
      return settle({ status: null, reason: `${host} is an address that nothing is sent to` });

    const end = (outcome: Attempt) => {
      clearTimeout(deadline);
      limits.signal?.removeEventListener('abort', callOff);
      settle(outcome);
    };
    /** Settles it by the answer, once there is one. */
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
        // The status says it all, or nearly. The rest is let pass, but not for long.
        let left = politeBytes;
        response.on('data', (piece: Buffer) => {
          if (text.length < wanted) text += piece.toString('latin1', 0, wanted);
          left -= piece.length;
          if (left < 0) request.destroy();
        });
        response.on('error', () => {});
        const enough = setTimeout(() => request.destroy(), politeMs);
        enough.unref();
        response.on('close', () => clearTimeout(enough));
        response.on('end', answered);
      },
    );
    const callOff = () => request.destroy(new Refused('it was called off'));
    limits.signal?.addEventListener('abort', callOff, { once: true });
    const deadline = setTimeout(
      () => request.destroy(new Refused(`there was no answer within ${Math.ceil(limits.timeoutMs / 1000)} seconds`)),
      limits.timeoutMs,
    );
    request.on('error', (error) => (answered ? answered() : end({ status: null, reason: reasonOf(error) })));
    // Also when a far end closes without a word.
    request.on('close', () =>
      answered ? answered() : end({ status: null, reason: 'the connection ended without an answer' }),
    );
    request.end(post.body);
  });
}

/** In words that hold nothing of the address but its host. */
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
      return 'the far end could not be reached';
    default:
      if (code?.startsWith('HPE_')) return 'what came back is not HTTP';
      if (code && /CERT|TLS|SSL|SELF_SIGNED|UNABLE_TO/.test(code)) return `its certificate is not accepted (${code})`;
      return `it failed (${code ?? error.name})`;
  }
}

/** Seconds, or a date; null when it is neither. */
export function retryAfter(value: string | undefined, nowMs: number): number | null {
  if (value === undefined) return null;
  if (/^\d{1,9}(\.\d{1,6})?$/.test(value)) return Math.ceil(Number(value) * 1000);
  // The one form that is written today; the engine would find a date in almost anything.
  const at = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} [\d:]{8} GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at - nowMs);
}
