import { createHash, timingSafeEqual } from 'node:crypto';
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

/** Sources of metrics for Prometheus, read with the configured token or a sign-in session. */
export interface Scraped {
  /** Metrics of the process: the same series for any number of agents. */
  scrape(): Promise<{ type: string; body: string }>;
  /** Returns metrics of the agents that a selector matches. Without this function, agents have no metrics here. */
  readonly agents?: ((filter: string | undefined) => Promise<readonly AgentStanding[]>) | undefined;
  /** A token that is accepted instead of a sign-in session. */
  readonly token: string | null | (() => string | null);
}

export interface ScrapingContext {
  /** Admits a request, or throws. */
  admit(request: FastifyRequest): Session | null | Promise<Session | null>;
  /** Called for a request with this token. */
  admitted(request: FastifyRequest): void;
  readonly responses: Pick<StreamingResponses, 'add'>;
  /** Called for failures after an answer began. */
  broken(request: FastifyRequest, error: unknown): void;
}

const agentsQuery = z.strictObject({ filter: z.string().max(2048).optional() });

export function registerScraping(app: FastifyInstance, scraped: Scraped, context: ScrapingContext): void {
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    // Read for each request: a reload may have changed it.
    const token = typeof scraped.token === 'function' ? scraped.token() : scraped.token;
    const expected = token === null ? null : digest(token);
    const sent = bearerToken(request.headers.authorization);
    // Comparing digests of equal length reveals nothing about the token.
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
    if (request.session !== null) context.responses.add(request.session, reply.raw, false);
    const text = Readable.from(exposeAgents(await agents(filter)), { objectMode: false });
    reply.header('content-type', expositionType).header('vary', 'accept-encoding');
    const fail = (error: unknown) => {
      if (!reply.raw.destroyed) context.broken(request, error);
    };
    text.on('error', fail);
    if (!takesGzip(request.headers['accept-encoding'])) return reply.send(text);
    // Names of ten thousand agents are repeated a dozen times: compress in another thread.
    const compressed = createGzip({ level: 1 }).on('error', fail);
    text.on('error', (error) => compressed.destroy(error));
    // If the client disconnects, writing stops as well.
    compressed.on('close', () => text.destroy());
    return reply.header('content-encoding', 'gzip').send(text.pipe(compressed));
  });
}

/** Whether `gzip` is accepted with a weight above 0. */
const takesGzip = (accepted: string | string[] | undefined): boolean =>
  String(accepted ?? '')
    .split(',')
    .some((coding) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(coding));

const digest = (token: string): Buffer => createHash('sha256').update(token).digest();
