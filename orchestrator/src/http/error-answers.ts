import { routes } from '@muster/protocol/http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { FailedAfterWrite, headersOf, musterErrorOf, problemOf } from './server/problem.ts';
import type { RefusedCall } from './server/refused-requests.ts';
import { pathOf } from './server/request-path.ts';

/** Responds with a problem document. Logs the error if the server caused it. */
export function answerError(log: Logger, thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = musterErrorOf(thrown);
  const about = { request_id: request.id, method: request.method, path: pathOf(request) };
  const bug = error instanceof FailedAfterWrite ? error.cause : thrown;
  if (error.code === 'internal' || error instanceof FailedAfterWrite)
    log.error({ ...about, code: error.code, err: bug }, 'request failed');
  else if (error.kind.status >= 500) log.warn({ ...about, code: error.code, detail: error.message }, 'request failed');
  reply.code(error.kind.status).headers(headersOf(error)).header('content-type', 'application/problem+json');
  return reply.send(JSON.stringify(problemOf(error, request.id)));
}

/**
 * Registers the error handler for all routes.
 * @param refused called before a request is refused for a missing role or a rate limit
 */
export function answerErrors(
  app: FastifyInstance,
  log: Logger,
  refused: ((call: RefusedCall) => Promise<void>) | undefined,
): void {
  app.setErrorHandler((thrown, request, reply) => {
    const { routeId } = request.routeOptions.config as { routeId?: string };
    const route = routeId === undefined ? undefined : routes.find(({ id }) => id === routeId);
    const error = musterErrorOf(thrown);
    if (route === undefined || ![403, 429].includes(error.kind.status) || refused === undefined)
      return answerError(log, thrown, request, reply);
    // Records the refusal before responding. The request is refused even if recording fails.
    return refused({ error, route, session: request.session, ip: request.ip })
      .catch((failed: unknown) =>
        log.warn({ request_id: request.id, err: failed }, 'failed to record refusal in the audit log'),
      )
      .then(() => answerError(log, thrown, request, reply));
  });
}
