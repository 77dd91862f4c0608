import type { Socket } from 'node:net';
import { type ErrorCode, errorKinds, MusterError } from '@muster/protocol';
import { apiPrefix, type Route } from '@muster/protocol/http';
import { problemOf, RefusedRequest } from './problem.ts';

/**
 * Returns a function that creates the error for an unknown path or method.
 * @param isPage reports whether the path is public and outside the API
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
    return new RefusedRequest('method_not_allowed', `This path supports only ${allow}.`, { allow });
  };
}

const clientCodes: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
};

/** Sends an error in reply to data that is not HTTP or to a request that timed out, and closes the connection. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket, requestId: string): void {
  // The client has disconnected or has received part of another response.
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
