import { MusterError } from '@muster/protocol';
import { apiPrefix, type Route } from '@muster/protocol/http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { hasWritten, withinRequest } from '../../request-fields.ts';
import { archiveIn } from '../archive-body.ts';
import { type AnswerForm, sendAnswer } from './answer.ts';
import { authorize } from './authentication.ts';
import { minCompressedBytes } from './compression.ts';
import { JsonBody, type Session } from './handlers.ts';
import { invalidInput, readInput } from './input.ts';
import { prefersAsync } from './prefer.ts';
import { FailedAfterWrite, musterErrorOf } from './problem.ts';
import { nothing, type ParsedQuery } from './query.ts';
import { Facts } from './request-facts.ts';
import type { OnSessionEnd, StreamingResponses } from './streaming-responses.ts';

/** A handler that is not typed by its route. */
export type AnyHandler = (call: {
  params: unknown;
  query: unknown;
  body: unknown;
  session: Session | null;
  archive: AsyncIterable<Uint8Array> | null;
  requireDiskSpace: () => void;
  respondAsync: boolean;
  request: Facts;
}) => unknown;

export interface EndpointContext {
  readonly validateAnswers: boolean;
  /** Throws if the disk has no room for the route's writes. */
  readonly requireDiskSpace?: (route: Route) => void;
  /** Whether to accept secrets over plain HTTP because a proxy terminates TLS. */
  readonly trustProxyTls?: boolean;
  readonly draining: AbortSignal;
  /** Checks a request's rate limits and session before the body is read. Throws to refuse the request. */
  admit(route: Route, request: FastifyRequest): Session | null | Promise<Session | null>;
  /** Throws if the session has ended since the request was admitted. */
  confirm(session: Session, request: FastifyRequest): void | Promise<void>;
  readonly responses: StreamingResponses;
  /** Called for errors that occur after part of the response has been sent. */
  broken(request: FastifyRequest, error: unknown): void;
}

/** Routes whose responses are not aborted immediately when the session ends. */
const onSessionEnd: Readonly<Record<string, OnSessionEnd>> = {
  removeOperator: 'complete',
  removeOperatorReporting: 'complete',
  endSession: 'complete',
  endSessions: 'complete',
  logout: 'complete',
  openConsoleSession: 'complete',
  renew: 'complete',
  followEvents: 'abort-after-grace',
};

/**
 * Serves a request that may change something. After a write, the store reports its own errors as `outcome_unknown`; this
 * function does so with a bug.
 */
const serveChange = <T>(requestId: string, serve: () => Promise<T>): Promise<T> =>
  withinRequest(requestId, async () => {
    try {
      return await serve();
    } catch (error) {
      throw hasWritten() && musterErrorOf(error).code === 'internal' ? new FailedAfterWrite(error) : error;
    }
  });

/** A route without a query or body accepts only an empty query or body. */
const empty = z.strictObject({});
const defaultBodyLimit = 1024 * 1024;

/**
 * Registers a route.
 * @throws Error if its schema restricts path parameters, because malformed IDs must be reported as unknown
 */
export function registerEndpoint(
  app: FastifyInstance,
  route: Route,
  handler: AnyHandler,
  context: EndpointContext,
): void {
  for (const [name, schema] of Object.entries(route.params?.shape ?? {})) {
    const { type, checks } = (schema as z.ZodType)._zod.def;
    if (type !== 'string' || (checks?.length ?? 0) > 0)
      throw new Error(`${route.id}: the parameter ${name} must accept any string; malformed values must return 404`);
  }
  const form: AnswerForm = {
    route,
    defaultStatus: Math.min(...Object.keys(route.answers).map(Number)),
    validate: context.validateAnswers,
  };
  const bodySchema = route.method === 'GET' ? null : (route.body ?? empty);
  const emptyBody = route.body === undefined || route.bodyOptional === true;

  const readQuery = (request: FastifyRequest): unknown => {
    const parsed = request.query as ParsedQuery;
    if (parsed === nothing && route.query === undefined) return parsed.values;
    const { values, faults } = parsed;
    if (faults.length > 0) throw invalidInput('query', faults);
    return readInput(route.query ?? empty, values, 'query');
  };
  const readBody = (request: FastifyRequest): unknown => {
    if (bodySchema === null || archiveIn(request.body) !== null) return {};
    const body = request.body === undefined && emptyBody ? {} : request.body;
    if (body === undefined)
      throw new MusterError('malformed_json', 'A body is required.', [{ path: '', message: 'expected a JSON value' }]);
    return readInput(bodySchema, body, 'body');
  };

  const isConfidential = ({ secure, loopback }: Facts): boolean => secure || loopback || context.trustProxyTls === true;

  /** Whether the session may end after the request is admitted but before its handler runs. */
  const mayTakeLong = route.method !== 'GET' || route.media !== undefined;
  /** Registers the response with its session, whose end aborts it, unless `onSessionEnd` specifies otherwise. */
  const track = (session: Session, reply: FastifyReply): void =>
    context.responses.add(session, reply.raw, onSessionEnd[route.id] ?? 'abort');
  const answer = (request: FastifyRequest, reply: FastifyReply): FastifyReply | Promise<FastifyReply> => {
    const respondAsync = route.respondAsync === true && prefersAsync(request.headers.prefer);
    const call = {
      params: request.params,
      query: readQuery(request),
      body: readBody(request),
      archive: archiveIn(request.body),
      requireDiskSpace: () => context.requireDiskSpace?.(route),
      session: request.session,
      respondAsync,
      request: new Facts(request, reply, context.draining),
    };
    const send = (body: unknown): FastifyReply | Promise<FastifyReply> => {
      if (context.draining.aborted) reply.header('connection', 'close');
      return sendAnswer(form, body, reply, respondAsync, (error) => context.broken(request, error));
    };
    // GET handlers do not log, and run so often that an async context would be too expensive.
    if (route.method !== 'GET') return serveChange(request.id, async () => send(await handler(call)));
    const given = handler(call);
    // The synchronous part of a handler does not end sessions. A complete short body is sent immediately. A longer one
    // may be compressed in the thread pool first.
    const isSent = given instanceof JsonBody && given.json.length < minCompressedBytes;
    if (!mayTakeLong && request.session !== null && !isSent) track(request.session, reply);
    return given instanceof Promise ? given.then(send) : send(given);
  };

  app.route({
    method: route.method,
    url: apiPrefix + route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    bodyLimit: route.bodyLimit ?? defaultBodyLimit,
    config: { routeId: route.id, archive: route.archive === true },
    onRequest: (request, reply, done) => {
      const enter = (session: Session | null) => {
        // Set before the checks, so that recorded refusals can identify the operator.
        request.session = session;
        authorize(route.access, session);
        context.requireDiskSpace?.(route);
        if (route.confidential === true && !isConfidential(new Facts(request, reply, context.draining)))
          throw new MusterError('plaintext_refused');
        done();
      };
      const refuse = (error: Error) => done(error);
      try {
        const admitted = context.admit(route, request);
        if (admitted instanceof Promise) admitted.then(enter).catch(refuse);
        else enter(admitted);
      } catch (error) {
        refuse(error as Error);
      }
    },
    handler: (request, reply) => {
      if (request.session === null || !mayTakeLong) return answer(request, reply);
      track(request.session, reply);
      // The session may have ended while the body was being received.
      const confirmed = context.confirm(request.session, request);
      return confirmed instanceof Promise ? confirmed.then(() => answer(request, reply)) : answer(request, reply);
    },
  });
}
