import { generateKeyPairSync } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { agentExample, nodeExample } from '@muster/protocol/http';
import fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { createApp } from '../../../orchestrator/src/http/app.ts';
import { hashToken } from '../../../orchestrator/src/http/server/authentication.ts';
import { selfSigned } from '../../../orchestrator/src/identity/certificate.ts';
import { exampleHandlers } from '../../../orchestrator/test/app-fixture.ts';

/**
 * A server that `api.ts` measures, in a separate process. Receives a message with its configuration, and replies with
 * its port.
 */
export interface ServerOptions {
  kind: 'bare' | 'muster';
  /** The bare server's response body for the agent's record. */
  bytes: string;
  /** The bare server's response bodies for other paths. */
  pages?: Record<string, string>;
  /** Token that the server `muster` accepts. */
  token: string;
  tls: boolean;
}

process.on('disconnect', () => process.exit());
process.once('message', async (options: ServerOptions) => {
  const app = options.kind === 'bare' ? await bareServer(options) : musterServer(options);
  await app.listen({ host: '127.0.0.1', port: 0 });
  process.send?.((app.server.address() as AddressInfo).port);
});

async function bareServer({ bytes, pages = {}, tls }: ServerOptions): Promise<FastifyInstance> {
  const app = tls
    ? (fastify({ https: await throwawayCertificate() }) as unknown as FastifyInstance)
    : (fastify() as FastifyInstance);
  app.get('/api/v1/agents/:node_id', (_request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(bytes);
  });
  app.get('/api/v1/agents', (request, reply) => {
    reply.header('content-type', 'application/json; charset=utf-8').send(pages[request.url]);
  });
  // The framework has parsed the body. The server stores nothing.
  app.put('/api/v1/agents/:node_id/tags/:key', (_request, reply) => {
    reply.code(204).send();
  });
  return app;
}

/** Creates a server with the real HTTP layer, and a handler with the record in memory. */
function musterServer({ token }: ServerOptions): FastifyInstance {
  const tokenHash = hashToken(token);
  const session = { operator_id: nodeExample, username: 'bench', role: 'operator', token_hash: tokenHash } as const;
  const records = new Map([[nodeExample, agentExample]]);
  return createApp({
    handlers: { ...exampleHandlers(), getAgent: ({ params }) => records.get(params.node_id) ?? agentExample },
    sessions: { find: (hash) => (hash === tokenHash ? session : null) },
    log: pino({ level: 'info' }, pino.destination('/dev/null')),
    // Rate limits are enabled, but the bench does not reach them.
    limits: { rates: { signIn: { perMinute: 60, burst: 30 }, sessionPerSecond: 1e9 } },
    version: '0',
  });
}

async function throwawayCertificate(): Promise<{ cert: string; key: string }> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    cert: await selfSigned(privateKey, { commonName: 'bench', hosts: ['127.0.0.1'], days: 2 }),
    key: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
  };
}
