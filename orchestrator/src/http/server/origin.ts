import { MusterError } from '@muster/protocol';
import type { FastifyRequest } from 'fastify';

/**
 * Pages of others get nothing: neither read what is here, nor have it do anything. There is no cookie that a browser would
 * send along for them, and no header that would let them read an answer; this refuses before anything is looked at, so
 * that what is open to anyone is not open to any page. Programs that are no browser say nothing of pages.
 */

/** What a browser says of the page that asks. */
interface Told {
  readonly method: string;
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site`, `Sec-Fetch-Mode`. */
  readonly site: string | undefined;
  readonly mode: string | undefined;
}

/**
 * @param own what a browser calls the pages that are served here
 * @param isPage whether people may be led to the address by a link elsewhere
 */
export function isForeign({ method, origin, site, mode }: Told, own: readonly string[], isPage: boolean): boolean {
  if (origin !== undefined && !own.includes(origin.toLowerCase())) return true;
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return !(isPage && mode === 'navigate' && (method === 'GET' || method === 'HEAD'));
}

/**
 * Under which origins a browser may have asked.
 * @param host as the client sent it, with the port unless it is the usual one
 */
export function ownOrigins(protocol: string, host: string, publicUrl: string | null): string[] {
  const schemes = protocol === 'https' ? ['https'] : ['http', 'https'];
  return [
    // Over plain HTTP a proxy on the way may speak TLS to the browser, and not be named in the configuration. The other
    // way round nobody is believed: on a network such a page may be anybody's.
    ...schemes.map((scheme) => `${scheme}://${host}`),
    ...(publicUrl === null ? [] : [publicUrl]),
  ].flatMap((text) => URL.parse(text)?.origin ?? []);
}

/** @throws MusterError when a page of another host, or of none, asks */
export function requireOwnOrigin(request: FastifyRequest, publicUrl: string | null, isPage: boolean): void {
  const { headers, method } = request;
  if (headers.origin === undefined && headers['sec-fetch-site'] === undefined) return;
  const text = (name: string): string | undefined => headers[name]?.toString();
  const told = { method, origin: headers.origin, site: text('sec-fetch-site'), mode: text('sec-fetch-mode') };
  if (isForeign(told, ownOrigins(request.protocol, request.host, publicUrl), isPage))
    throw new MusterError('origin_refused');
}
