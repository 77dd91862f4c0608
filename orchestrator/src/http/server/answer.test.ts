import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { type Agent, agentExample } from '@muster/protocol/http';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { bearer, keepingLog, testApp } from '../../../test/app-fixture.ts';
import { Chunked, Reply } from './handlers.ts';

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** Creates an app that returns the list of agents in the given chunks. */
function listing(
  chunks: () => AsyncIterable<Agent[]> | Iterable<Agent[]>,
  options: Parameters<typeof testApp>[1] = {},
) {
  const app = testApp({ listAgents: () => new Chunked(chunks()) }, options);
  apps.push(app);
  return app;
}
const get = (app: FastifyInstance) => app.inject({ url: '/api/v1/agents', headers: bearer('operator') });
const agents = (count: number): Agent[] => Array.from({ length: count }, () => agentExample);

describe('long responses', () => {
  const many = Array.from({ length: 50 }, () => agents(20));
  const getEncoded = (app: FastifyInstance, encodings: string, method: 'GET' | 'HEAD' = 'GET') =>
    app.inject({ method, url: '/api/v1/agents', headers: { ...bearer('operator'), 'accept-encoding': encodings } });

  test.each([
    ['in pieces', () => many],
    ['in one piece', () => [agents(100)]],
  ])('compresses a long response if the client accepts compression: %s', async (_, chunks) => {
    const app = listing(chunks);
    const plain = await getEncoded(app, 'identity');
    expect(plain.headers).toMatchObject({ vary: 'accept-encoding' });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    const packed = await getEncoded(app, 'gzip, deflate, br');
    expect(packed.headers).toMatchObject({
      vary: 'accept-encoding',
      'content-encoding': 'gzip',
      'content-type': 'application/json',
    });
    expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length / 5);
    expect(gunzipSync(packed.rawPayload).toString()).toBe(plain.body);
  });

  test('does not compress short responses and responses to HEAD', async () => {
    const short = await getEncoded(
      listing(() => [agents(1), agents(1)]),
      'gzip',
    );
    expect(short.headers).not.toHaveProperty('content-encoding');
    expect(short.headers).not.toHaveProperty('vary');
    const head = await getEncoded(
      listing(() => [agents(100)]),
      'gzip',
      'HEAD',
    );
    expect(head.headers).not.toHaveProperty('content-encoding');
  });

  test('reads the source of a response at the client’s pace, and closes the source on disconnect', async () => {
    let read = 0;
    let letGo = false;
    // Random data, which cannot be compressed.
    const record = () => ({ ...agentExample, attributes: { noise: randomBytes(30_000).toString('hex') } });
    const app = listing(
      async function* () {
        try {
          for (; read < 2_000; read++) yield [record()];
        } finally {
          letGo = true;
        }
      },
      { validateAnswers: false },
    );
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    const { authorization } = bearer('operator');
    socket.write(
      `GET /api/v1/agents HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\naccept-encoding: gzip\r\n\r\n`,
    );
    await once(socket, 'readable');
    const readingStopped = async () => {
      for (let before = -1; before !== read; ) {
        before = read;
        await sleep(200);
      }
    };
    await readingStopped();
    expect(read).toBeLessThan(500);
    socket.destroy();
    await vi.waitFor(() => expect(letGo).toBe(true));
  });

  test('disconnects the client if the source of a compressed response fails', async () => {
    const app = listing(async function* () {
      for (let at = 0; at < 20; at++) yield agents(100);
      throw new Error('the database is gone');
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/agents`, { headers: bearer('operator') });
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    await expect(answer.text()).rejects.toThrow();
  });
});

describe('responses in chunks', () => {
  test.each([
    ['nothing', []],
    ['empty pieces', [[], []]],
    ['one piece', [agents(2)]],
    ['one piece after an empty one', [[], agents(1), []]],
    ['many', [agents(3), [], agents(1), agents(2)]],
  ])('serializes an array of %s', async (_name, chunks) => {
    for (const app of [listing(() => chunks), listing(() => asynchronously(chunks))]) {
      const answer = await get(app);
      expect(answer.statusCode).toBe(200);
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
      expect(answer.json()).toEqual(chunks.flat());
    }
  });

  test('yields to the event loop between the chunks of a response', async () => {
    let turns = 0;
    const count = () => {
      turns += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await get(listing(() => Array.from({ length: 50 }, () => agents(20))));
    clearImmediate(timer);
    expect(turns).toBeGreaterThan(40);
  });

  test('returns an error if the source fails before its second chunk', async () => {
    const answer = await get(
      listing(async function* () {
        yield agents(1);
        throw new Error('the database is gone');
      }),
    );
    expect(answer.statusCode).toBe(500);
  });

  test('disconnects the client if the source fails after its second chunk, and logs the failure', async () => {
    const { log, lines } = keepingLog();
    const app = listing(
      async function* () {
        for (let at = 0; at < 5; at++) yield agents(100);
        throw new Error('the database is gone');
      },
      { log },
    );
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const answer = await fetch(`${url}/api/v1/agents`, { headers: bearer('operator') });
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    expect(lines).toContainEqual(expect.objectContaining({ msg: 'response aborted' }));
  });

  test('closes the source of a response when the client disconnects', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const app = listing(async function* () {
      try {
        for (;;) yield agents(500);
      } finally {
        release();
      }
    });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const aborting = new AbortController();
    const answer = await fetch(`${url}/api/v1/agents`, { headers: bearer('operator'), signal: aborting.signal });
    await answer.body?.getReader().read();
    aborting.abort();
    await released;
  });

  test('validates every chunk and status of a response when validation is enabled', async () => {
    const wrong = [{ ...agentExample, password: 'x' } as Agent];
    expect((await get(listing(() => [agents(1), wrong]))).statusCode).toBe(500);
    const app = testApp({ listAgents: () => new Reply(201 as 200, []) });
    expect((await get(app)).statusCode).toBe(500);
  });

  test('sends a response in chunks with its status and headers', async () => {
    const app = testApp({
      listAgents: () => new Reply(200, new Chunked([agents(1), agents(1)]), { link: '<x>; rel="next"' }),
    });
    const answer = await get(app);
    expect(answer.headers.link).toBe('<x>; rel="next"');
    expect(answer.json()).toHaveLength(2);
  });
});

async function* asynchronously<T>(items: Iterable<T>): AsyncGenerator<T> {
  for (const item of items) yield await Promise.resolve(item);
}
