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
import type { LastingAnswers } from './streaming-responses.ts';

/** A handler as it is called here, where the types of single routes are no longer known. */
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
  /** Throws when there is no room for what the route would write. */
  readonly requireRoom?: (route: Route) => void;
  /** A proxy on the way speaks TLS to the clients, whatever the connection here looks like. */
  readonly trustProxyTls?: boolean;
  readonly draining: AbortSignal;
  /** Lets a request in, or throws: rates and the session. Runs before the body is read. */
  admit(route: Route, request: FastifyRequest): Session | null | Promise<Session | null>;
  /** Throws when the session that let a request in has ended since. */
  confirm(request: FastifyRequest): void | Promise<void>;
  readonly lasting: LastingAnswers;
  /** What fails after an answer began. */
  broken(request: FastifyRequest, error: unknown): void;
}

/** Routes whose answer tells of the end of the caller's own session, or ends in order when that does. */
const endsByItself: readonly string[] = [
  'removeOperator',
  'removeOperatorReporting',
  'logout',
  'renew',
  'followEvents',
];

/** A route that takes no query or body takes an empty one. */
const empty = z.strictObject({});
const defaultBodyLimit = 1024 * 1024;

/**
 * Registers one route of the table.
 * @throws Error when its schema judges parameters of the path: a malformed id is unknown, not invalid
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
      throw new Error(`${route.id}: the parameter ${name} must be any string; what is malformed is answered with 404`);
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
      throw new MusterError('malformed_json', 'The body is empty, and this needs one.', [
        { path: '', message: 'a JSON value is needed' },
      ]);
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
    // Reads log nothing of their own, and are too many to pay for it.
    const given = route.method === 'GET' ? handler(call) : withinRequest(request.id, () => handler(call));
    const send = (body: unknown): FastifyReply | Promise<FastifyReply> => {
      if (context.draining.aborted) reply.header('connection', 'close');
      return sendAnswer(form, body, reply, respondAsync, (error) => context.broken(request, error));
    };
    return given instanceof Promise ? given.then(send) : send(given);
  };
  /** Time passes between the admission of a request and its answer. */
  const mayTakeLong = route.method !== 'GET' || route.media !== undefined;

  app.route({
    method: route.method,
    url: apiPrefix + route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    bodyLimit: route.bodyLimit ?? defaultBodyLimit,
    config: { routeId: route.id },
    onRequest: (request, reply, done) => {
      const enter = (session: Session | null) => {
        // First: a refusal has to say whose it is.
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
      // From here on the end of the session cuts the answer off, unless it is whole before.
      context.lasting.add(request.session, reply.raw, endsByItself.includes(route.id));
      if (!mayTakeLong) return answer(request, reply);
      // A body may be sent as slowly as its sender likes: the session may have ended since the headers.
      const confirmed = context.confirm(request);
      return confirmed instanceof Promise ? confirmed.then(() => answer(request, reply)) : answer(request, reply);
    },
  });
}
