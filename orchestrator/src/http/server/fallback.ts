import type { Socket } from 'node:net';
import { type ErrorCode, errorKinds, MusterError } from '@muster/protocol';
import { apiPrefix, type Route } from '@muster/protocol/http';
import { problemOf, RefusedRequest } from './problem.ts';

/**
 * Says what no route took: another method than the address has, or nothing there at all.
 * @param isPage whether something can be read at an address outside the API
 */
export function createFallback(
  routes: readonly Route[],
  isPage: (path: string) => boolean,
): (path: string) => MusterError {
  const patterns = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  for (const { path, method } of routes) {
    const pattern = path.replaceAll(/\{\w+\}/g, '[^/]+');
    const entry = patterns.get(pattern) ?? { pattern: new RegExp(`^${apiPrefix}${pattern}$`), methods: new Set() };
    patterns.set(pattern, entry);
    entry.methods.add(method);
    if (method === 'GET') entry.methods.add('HEAD');
  }
  return (path) => {
    const methods = new Set<string>(isPage(path) ? ['GET', 'HEAD'] : []);
    for (const entry of patterns.values())
      if (entry.pattern.test(path)) for (const method of entry.methods) methods.add(method);
    if (methods.size === 0) return new MusterError('route_not_found');
    const allow = [...methods].sort().join(', ');
    return new RefusedRequest('method_not_allowed', `This address takes ${allow}.`, { allow });
  };
}

const clientCodes: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
};

/** Answers what is not HTTP at all, or took too long to become a request; then the connection ends. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  // Nobody is there to be answered, or an answer has begun that this would fall into.
  if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesWritten > 0) {
    socket.destroy();
    return;
  }
  const refusal = new MusterError(clientCodes[error.code ?? ''] ?? 'malformed_request');
  const { status, title } = errorKinds[refusal.code];
  const body = JSON.stringify(problemOf(refusal, requestId));
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\ncontent-type: application/problem+json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
