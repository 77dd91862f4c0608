import { MusterError } from '@muster/protocol';
import type { FastifyRequest } from 'fastify';
import { isApi } from './request-path.ts';

/**
 * Refuses pages from other origins before all other checks, so that they cannot use public routes, or use the cookie of
 * a console session. The orchestrator sends no CORS headers, which would allow such pages to read responses. Programs
 * other than browsers send no `Origin` header.
 */

/** Headers in which a browser identifies the page that sends the request. */
interface PageHeaders {
  readonly method: string;
  readonly origin: string | undefined;
  /** Values of `Sec-Fetch-Site` and `Sec-Fetch-Mode`. */
  readonly site: string | undefined;
  readonly mode: string | undefined;
}

/**
 * Reports whether a page from another origin sends the request.
 * @param own origins of the orchestrator's pages
 * @param isPage whether pages from other origins may link to the path
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

/** Returns the origins of the orchestrator's pages. @param host the `Host` header */
export function ownOrigins(protocol: string, host: string, publicUrl: string | null): string[] {
  const schemes = protocol === 'https' ? ['https'] : ['http', 'https'];
  return [
    // An undeclared proxy may terminate TLS, so plain HTTP requests may come from HTTPS pages. The reverse is not
    // accepted, because anyone on the network can serve a plain HTTP page.
    ...schemes.map((scheme) => `${scheme}://${host}`),
    ...(publicUrl === null ? [] : [publicUrl]),
  ].flatMap((text) => URL.parse(text)?.origin ?? []);
}

/** @throws MusterError if a page from another origin sends the request */
export function requireOwnOrigin(request: FastifyRequest, publicUrl: string | null): void {
  const { headers, method } = request;
  if (headers.origin === undefined && headers['sec-fetch-site'] === undefined) return;
  const text = (name: string): string | undefined => headers[name]?.toString();
  const page = { method, origin: headers.origin, site: text('sec-fetch-site'), mode: text('sec-fetch-mode') };
  if (isForeign(page, ownOrigins(request.protocol, request.host, publicUrl), !isApi(request)))
    throw new MusterError('origin_refused');
}
