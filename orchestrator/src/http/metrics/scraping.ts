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
import type { LastingAnswers } from '../server/streaming-responses.ts';
import { exposeAgents, expositionType } from './agent-exposition.ts';

/** What Prometheus scrapes: with the configured token, or a session like any other. */
export interface Scraped {
  /** Of the process: the same few series, however many agents there are. */
  scrape(): Promise<{ type: string; body: string }>;
  /** Of the agents that a selector matches. Without it nothing is shown of single agents. */
  readonly agents?: ((filter: string | undefined) => Promise<readonly AgentStanding[]>) | undefined;
  /** With it no session is needed. */
  readonly token: string | null | (() => string | null);
}

export interface ScrapingContext {
  /** Lets a request in, or throws. */
  admit(request: FastifyRequest): Session | null | Promise<Session | null>;
  /** A request came with the token. */
  admitted(request: FastifyRequest): void;
  readonly lasting: Pick<LastingAnswers, 'add'>;
  /** What fails after an answer began. */
  broken(request: FastifyRequest, error: unknown): void;
}

const agentsQuery = z.strictObject({ filter: z.string().max(2048).optional() });

export function registerScraping(app: FastifyInstance, scraped: Scraped, context: ScrapingContext): void {
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    // Asked for each time: it may be another one since.
    const token = typeof scraped.token === 'function' ? scraped.token() : scraped.token;
    const expected = token === null ? null : digest(token);
    const sent = bearerToken(request.headers.authorization);
    // Digests are compared: they are of one length, and how far they agree says nothing of the token.
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
    if (request.session !== null) context.lasting.add(request.session, reply.raw, false);
    const text = Readable.from(exposeAgents(await agents(filter)), { objectMode: false });
    reply.header('content-type', expositionType).header('vary', 'accept-encoding');
    const fail = (error: unknown) => {
      if (!reply.raw.destroyed) context.broken(request, error);
    };
    text.on('error', fail);
    if (!takesGzip(request.headers['accept-encoding'])) return reply.send(text);
    // The names of ten thousand agents a dozen times over; squeezed by another thread.
    const squeezed = createGzip({ level: 1 }).on('error', fail);
    text.on('error', (error) => squeezed.destroy(error));
    // Who hangs up ends the writing too.
    squeezed.on('close', () => text.destroy());
    return reply.header('content-encoding', 'gzip').send(text.pipe(squeezed));
  });
}

/** Whether `gzip` is named, and not by a weight of nothing. */
const takesGzip = (accepted: string | string[] | undefined): boolean =>
  String(accepted ?? '')
    .split(',')
    .some((coding) => /^\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(coding));

const digest = (token: string): Buffer => createHash('sha256').update(token).digest();
