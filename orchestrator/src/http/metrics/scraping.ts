import { hash, timingSafeEqual } from 'node:crypto';
import { Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { AgentStanding } from '../../domain/fleet/metrics.ts';
import { bearerToken } from '../server/authentication.ts';
import type { Session } from '../server/handlers.ts';
import { invalidInput, readInput } from '../server/input.ts';
import type { ParsedQuery } from '../server/query.ts';
import type { StreamingResponses } from '../server/streaming-responses.ts';
import { exposeAgents, expositionType } from './agent-exposition.ts';

/** Metrics that Prometheus reads with the configured token or with a sign-in session. */
export interface Scraped {
  /** Returns the process metrics. The number of series does not depend on the number of agents. */
  scrape(): Promise<{ type: string; body: string }>;
  /** Returns metrics for the agents that match a selector. If omitted, agent metrics are not served. */
  readonly agents?: ((filter: string | undefined) => Promise<readonly AgentStanding[]>) | undefined;
  /**
   * Token that is accepted instead of a sign-in session, or a function that returns the token; null if no token is
   * accepted.
   */
  readonly token: string | null | (() => string | null);
}

export interface ScrapingContext {
  /** Admits a request, or throws. */
  admit(request: FastifyRequest): Session | null | Promise<Session | null>;
  /** Called for a request with the scrape token. */
  admitted(request: FastifyRequest): void;
  readonly responses: Pick<StreamingResponses, 'add'>;
  /** Called for errors that occur after part of the response has been sent. */
  broken(request: FastifyRequest, error: unknown): void;
}

const agentsQuery = z.strictObject({ filter: z.string().max(2048).optional() });

export function registerScraping(app: FastifyInstance, scraped: Scraped, context: ScrapingContext): void {
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    // Read for each request, because a reload may change the token.
    const token = typeof scraped.token === 'function' ? scraped.token() : scraped.token;
    const expected = token === null ? null : digest(token);
    const sent = bearerToken(request.headers.authorization);
    // Compares digests, because timingSafeEqual requires equal lengths, and the length of the token is secret.
    if (expected !== null && sent !== null && timingSafeEqual(digest(sent), expected)) return context.admitted(request);
    request.session = await context.admit(request);
  };
  app.get('/metrics', { onRequest }, async (_request, reply) => {
    const { type, body } = await scraped.scrape();
    return reply.header('content-type', type).send(body);
  });
  const { agents } = scraped;
  if (agents === undefined) return;
  app.get('/metrics/agents', { onRequest }, async (request, reply) => {
    const { values, faults } = request.query as ParsedQuery;
    if (faults.length > 0) throw invalidInput('query', faults);
    const { filter } = readInput(agentsQuery, values, 'query');
    if (request.session !== null) context.responses.add(request.session, reply.raw, 'abort');
    const text = Readable.from(exposeAgents(await agents(filter)), { objectMode: false });
    reply.header('content-type', expositionType).header('vary', 'accept-encoding');
    const fail = (error: unknown) => {
      if (!reply.raw.destroyed) context.broken(request, error);
    };
    text.on('error', fail);
    if (!takesGzip(request.headers['accept-encoding'])) return reply.send(text);
    // Compresses in a separate thread, because the text is long: it repeats the names of all agents for each metric.
    const compressed = createGzip({ level: 1 }).on('error', fail);
    text.on('error', (error) => compressed.destroy(error));
    // Stops the writer when the client disconnects.
    compressed.on('close', () => text.destroy());
    return reply.header('content-encoding', 'gzip').send(text.pipe(compressed));
  });
}

/** Reports whether an `Accept-Encoding` header accepts `gzip` with a weight above 0. */
const takesGzip = (accepted: string | string[] | undefined): boolean =>
  String(accepted ?? '')
    .split(',')
    .some((coding) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(coding));

const digest = (token: string): Buffer => hash('sha256', token, 'buffer');
