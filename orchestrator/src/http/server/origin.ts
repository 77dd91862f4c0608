import { MusterError } from '@muster/protocol';
import type { FastifyRequest } from 'fastify';

/**
 * Refuses pages of other origins before all other checks. Such pages could do little: browsers have no cookies to
 * send, and no CORS headers let the pages read an answer. But public routes must not be available to foreign pages.
 * Programs other than browsers send no `Origin` header.
 */

/** Headers of a browser about the page that sends the request. */
interface PageHeaders {
  readonly method: string;
  readonly origin: string | undefined;
  /** `Sec-Fetch-Site`, `Sec-Fetch-Mode`. */
  readonly site: string | undefined;
  readonly mode: string | undefined;
}

/**
 * @param own origins of the orchestrator's own pages
 * @param isPage whether pages of other origins may link to the path
 */
export function isForeign(
  { method, origin, site, mode }: PageHeaders,
  own: readonly string[],
  isPage: boolean,
): boolean {
  if (origin !== undefined && !own.includes(origin.toLowerCase())) return true;
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return !(isPage && mode === 'navigate' && (method === 'GET' || method === 'HEAD'));
}

/**
 * The origins that count as the orchestrator's own.
 * @param host the client's `Host` header, with the port unless it is the default
 */
export function ownOrigins(protocol: string, host: string, publicUrl: string | null): string[] {
  const schemes = protocol === 'https' ? ['https'] : ['http', 'https'];
  return [
    // Over plain HTTP an undeclared proxy may terminate TLS for the browser. The reverse is not trusted: anyone on the
    // network can serve a plain HTTP page.
    ...schemes.map((scheme) => `${scheme}://${host}`),
    ...(publicUrl === null ? [] : [publicUrl]),
  ].flatMap((text) => URL.parse(text)?.origin ?? []);
}

/** @throws MusterError for a page of another origin */
export function requireOwnOrigin(request: FastifyRequest, publicUrl: string | null, isPage: boolean): void {
  const { headers, method } = request;
  if (headers.origin === undefined && headers['sec-fetch-site'] === undefined) return;
  const text = (name: string): string | undefined => headers[name]?.toString();
  const page = { method, origin: headers.origin, site: text('sec-fetch-site'), mode: text('sec-fetch-mode') };
  if (isForeign(page, ownOrigins(request.protocol, request.host, publicUrl), isPage))
    throw new MusterError('origin_refused');
}
