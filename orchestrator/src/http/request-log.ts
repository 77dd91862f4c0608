import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { pathOf } from './server/request-path.ts';

/** Logs one line per request. Logs successful reads at debug level, because there are many. */
export function logRequest(log: Logger, request: FastifyRequest, reply: FastifyReply, ms: number): void {
  const quiet = reply.statusCode < 400 && (request.method === 'GET' || request.method === 'HEAD');
  const level = quiet ? 'debug' : 'info';
  if (!log.isLevelEnabled(level)) return;
  log[level](
    {
      request_id: request.id,
      method: request.method,
      path: pathOf(request),
      status: reply.statusCode,
      duration_ms: Math.round(ms * 10) / 10,
      ip: request.ip,
      ...(request.session ? { operator_id: request.session.operator_id } : {}),
    },
    'request',
  );
}

/** Logs an upgrade to a WebSocket with the same fields as a request. */
export function logUpgrade(log: Logger, request: FastifyRequest, mode: string, ms: number): void {
  log.info(
    {
      request_id: request.id,
      method: request.method,
      path: pathOf(request),
      status: 101,
      duration_ms: Math.round(ms * 10) / 10,
      ip: request.ip,
      mode,
    },
    'request',
  );
}
