import { apiPrefix, type Route, routes } from '@muster/protocol/http';
import type { FastifyInstance } from 'fastify';
import { type Logger, pino } from 'pino';
import { type AppOptions, createApp } from '../src/http/app.ts';
import { hashToken } from '../src/http/server/authentication.ts';
import { type Handlers, type Session, Stream } from '../src/http/server/handlers.ts';

/**
 * Session tokens for each role. The app in this file is real except for its handlers, which return each route's
 * example.
 */
export const tokens = { admin: 'admin-token', operator: 'operator-token' } as const;

const sessionOf = (role: Session['role']): Session => ({
  operator_id: role === 'admin' ? '21fe31dfa154a261626bf854046fd227' : '0a0b0c0d0e0f00010203040506070809',
  username: role,
  role,
  token_hash: hashToken(tokens[role]),
});
const live = new Map([sessionOf('admin'), sessionOf('operator')].map((session) => [session.token_hash, session]));
export const sessions = { find: (tokenHash: string) => live.get(tokenHash) ?? null };

export const exampleHandlers = (): Handlers =>
  Object.fromEntries(routes.map((route) => [route.id, () => exampleAnswer(route)])) as unknown as Handlers;

/** A route's example response, in the form in which a handler returns it. */
export function exampleAnswer(route: Route): unknown {
  const defaultStatus = Math.min(...Object.keys(route.answers).map(Number));
  return route.media?.[defaultStatus] === undefined
    ? route.example.answer
    : new Stream(once(String(route.example.answer)));
}

async function* once(text: string): AsyncGenerator<string> {
  yield text;
}

/** @param handlers replace the default handlers, which return examples */
export function testApp(handlers: Partial<Handlers> = {}, options: Partial<AppOptions> = {}): FastifyInstance {
  return createApp({
    handlers: { ...exampleHandlers(), ...handlers },
    sessions,
    log: pino({ level: 'silent' }),
    version: '0.0.0',
    validateAnswers: true,
    limits: { rates: { signIn: { perMinute: 1e6, burst: 1e6 }, sessionPerSecond: 1e6 } },
    ...options,
  });
}

/** Returns the URL of a route with the parameters from the route's example. */
export const addressOf = (route: Route): string =>
  apiPrefix +
  route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(route.example.params?.[name] ?? 'x'));

export const bearer = (role: Session['role']) => ({ authorization: `Bearer ${tokens[role]}` });

/** A logger that records its lines. */
export function keepingLog(level = 'debug'): { log: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level },
    { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  return { log, lines };
}
