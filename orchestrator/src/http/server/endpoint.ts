import { MusterError } from '@muster/protocol';
import { apiPrefix, type Route } from '@muster/protocol/http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { withinRequest } from '../../request-fields.ts';
import { type AnswerForm, sendAnswer } from './answer.ts';
import { authorize } from './authentication.ts';
import type { Session } from './handlers.ts';
import { invalidInput, readInput } from './input.ts';
import { prefersAsync } from './prefer.ts';
import { nothing, type ParsedQuery } from './query.ts';
import { Facts } from './request-facts.ts';
import type { StreamingResponses } from './streaming-responses.ts';

/** A handler without the types of its route. */
export type AnyHandler = (call: {
  params: unknown;
  query: unknown;
  body: unknown;
  session: Session | null;
  respondAsync: boolean;
  request: Facts;
}) => unknown;

export interface EndpointContext {
  readonly validateAnswers: boolean;
  /** Throws when the disk has no room for the route's writes. */
  readonly requireRoom?: (route: Route) => void;
  /** Whether an undeclared proxy terminates TLS for the clients. */
  readonly trustProxyTls?: boolean;
  readonly draining: AbortSignal;
  /** Admits a request or throws: rate limits and session. Runs before the body is read. */
  admit(route: Route, request: FastifyRequest): Session | null | Promise<Session | null>;
  /** Throws when the request's session has ended since its admission. */
  confirm(request: FastifyRequest): void | Promise<void>;
  readonly responses: StreamingResponses;
  /** Called for failures after an answer began. */
  broken(request: FastifyRequest, error: unknown): void;
}

/** Routes whose answer confirms the end of the caller's session, or ends in order when the session ends. */
const endsByItself: readonly string[] = [
  'removeOperator',
  'removeOperatorReporting',
  'logout',
  'renew',
  'followEvents',
];

/** A route without a query or body accepts an empty one. */
const empty = z.strictObject({});
const defaultBodyLimit = 1024 * 1024;

/**
 * Registers one route of the table.
 * @throws Error when its schema restricts path parameters: a malformed id is unknown, not invalid
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
      throw new Error(`${route.id}: the parameter ${name} must be any string; malformed values are answered with 404`);
  }
  const form: AnswerForm = {
    route,
    usualStatus: Math.min(...Object.keys(route.answers).map(Number)),
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
    if (bodySchema === null) return {};
    const body = request.body === undefined && emptyBody ? {} : request.body;
    if (body === undefined)
      throw new MusterError('malformed_json', 'A body is required.', [{ path: '', message: 'a JSON value is needed' }]);
    return readInput(bodySchema, body, 'body');
  };

  const requireConfidence = ({ secure, loopback }: Facts): void => {
    if (!secure && !loopback && !context.trustProxyTls) throw new MusterError('plaintext_refused');
  };

  const answer = (request: FastifyRequest, reply: FastifyReply): FastifyReply | Promise<FastifyReply> => {
    const respondAsync = route.respondAsync === true && prefersAsync(request.headers.prefer);
    const call = {
      params: request.params,
      query: readQuery(request),
      body: readBody(request),
      session: request.session,
      respondAsync,
      request: new Facts(request, reply, context.draining),
    };
    // GET handlers write no log lines, and are too frequent for the cost of an async context.
    const given = route.method === 'GET' ? handler(call) : withinRequest(request.id, () => handler(call));
    const send = (body: unknown): FastifyReply | Promise<FastifyReply> => {
      if (context.draining.aborted) reply.header('connection', 'close');
      return sendAnswer(form, body, reply, respondAsync, (error) => context.broken(request, error));
    };
    return given instanceof Promise ? given.then(send) : send(given);
  };
  /** Whether a session may end between the admission of a request and its answer. */
  const mayTakeLong = route.method !== 'GET' || route.media !== undefined;

  app.route({
    method: route.method,
    url: apiPrefix + route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    bodyLimit: route.bodyLimit ?? defaultBodyLimit,
    config: { routeId: route.id },
    onRequest: (request, reply, done) => {
      const enter = (session: Session | null) => {
        // The session is set first, so that a refusal can name it.
        request.session = session;
        authorize(route.access, session);
        context.requireRoom?.(route);
        if (route.confidential === true) requireConfidence(new Facts(request, reply, context.draining));
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
      if (request.session === null) return answer(request, reply);
      // After this, the end of the session ends the answer, unless it is complete.
      context.responses.add(request.session, reply.raw, endsByItself.includes(route.id));
      if (!mayTakeLong) return answer(request, reply);
      // The body may have arrived slowly, so the session may have ended since the headers.
      const confirmed = context.confirm(request);
      return confirmed instanceof Promise ? confirmed.then(() => answer(request, reply)) : answer(request, reply);
    },
  });
}
