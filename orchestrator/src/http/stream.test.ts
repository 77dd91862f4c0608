import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@muster/protocol/client';
import { type Route, route } from '@muster/protocol/http';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { type AnyHandler, registerEndpoint } from './server/endpoint.ts';
import { type Answer, JsonBody, Reply, Stream } from './server/handlers.ts';
import { parseQuery } from './server/query.ts';
import { StreamingResponses } from './server/streaming-responses.ts';

const lines = route({
  id: 'lines',
  method: 'GET',
  path: '/lines',
  tag: 'Test',
  summary: 'Lines',
  access: 'anyone',
  answers: { 200: z.string(), 202: z.strictObject({ later: z.boolean() }) },
  media: { 200: ['application/jsonl', 'text/plain'] },
  errors: [],
  example: { answer: '{}\n' },
});

let app: FastifyInstance;
let url: string;
let broken: unknown[];
const draining = new AbortController();
/** Starts a server with one route. */
async function serve(handler: AnyHandler): Promise<void> {
  registerEndpoint(app, lines as Route, handler, {
    validateAnswers: true,
    draining: draining.signal,
    admit: () => null,
    confirm: () => {},
    responses: new StreamingResponses(),
    broken: (_request, error) => broken.push(error),
  });
  url = await app.listen({ host: '127.0.0.1', port: 0 });
}
beforeEach(() => {
  broken = [];
  app = fastify({ routerOptions: { querystringParser: (text) => parseQuery(text) as never } });
});
afterEach(() => app.close());

async function* pieces(...of: (string | Uint8Array)[]): AsyncGenerator<string | Uint8Array> {
  yield* of;
}

test('aborts a response that is being compressed when the session ends', async () => {
  const { media: _, ...record } = lines;
  const responses = new StreamingResponses();
  app.decorateRequest('session', null);
  const handler: AnyHandler = () => {
    // Runs before the thread pool has compressed the response.
    setImmediate(() => responses.cutOff('ada'));
    return new JsonBody(randomBytes(2 ** 20));
  };
  registerEndpoint(app, { ...record, access: 'operator' } as unknown as Route, handler, {
    validateAnswers: false,
    draining: draining.signal,
    admit: () => ({ operator_id: 'ada', username: 'ada', role: 'operator', token_hash: 'first' }),
    confirm: () => {},
    responses,
    broken: (_request, error) => broken.push(error),
  });
  url = await app.listen({ host: '127.0.0.1', port: 0 });
  await expect(fetch(`${url}/api/v1/lines`, { headers: { 'accept-encoding': 'gzip' } })).rejects.toThrow();
});

describe('streamed response', () => {
  test('sends bytes and text in order, with the route’s content type', async () => {
    await serve(() => new Stream(pieces('a\n', '', Buffer.from([0x62, 0x0a]))));
    const answer = await fetch(`${url}/api/v1/lines`);
    expect(answer.headers.get('content-type')).toBe('application/jsonl');
    expect(await answer.text()).toBe('a\nb\n');
  });

  test('sends another declared content type with headers, but refuses an undeclared type', async () => {
    let type = 'text/plain';
    await serve(() => new Reply(200, new Stream(pieces('a'), { type }), { 'content-disposition': 'attachment' }));
    const answer = await fetch(`${url}/api/v1/lines`);
    expect(answer.headers.get('content-type')).toBe('text/plain');
    expect(answer.headers.get('content-disposition')).toBe('attachment');
    type = 'text/html';
    expect((await fetch(`${url}/api/v1/lines`)).status).toBe(500);
  });

  test('sends an empty body for an empty stream', async () => {
    await serve(() => new Stream(pieces()));
    const answer = await fetch(`${url}/api/v1/lines`);
    expect([answer.status, await answer.text()]).toEqual([200, '']);
  });

  test('returns 500 if the stream fails before its first chunk, and disconnects the client if it fails afterward', async () => {
    let first = true;
    await serve(() => {
      async function* failing() {
        if (!first) yield 'a';
        throw new Error('gone');
      }
      return new Stream(failing());
    });
    expect((await fetch(`${url}/api/v1/lines`)).status).toBe(500);
    first = false;
    const answer = await fetch(`${url}/api/v1/lines`);
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    expect(broken).toHaveLength(1);
  });

  test('sends the first chunk before the source yields the second chunk', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    await serve(() => {
      async function* slow() {
        yield 'a';
        await go;
        yield 'b';
      }
      return new Stream(slow());
    });
    const reader = (await fetch(`${url}/api/v1/lines`)).body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('a');
    resolve();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe('b');
  });

  test('waits for a client that does not read, and closes the source when the client disconnects', async () => {
    let made = 0;
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await serve(() => {
      async function* endless() {
        try {
          for (;;) {
            made++;
            yield Buffer.alloc(65_536);
          }
        } finally {
          release();
        }
      }
      return new Stream(endless());
    });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write('GET /api/v1/lines HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'readable');
    socket.pause();
    // Waits until the kernel's buffers are full, so that the server stops reading the source.
    let before = -1;
    while (before !== made) {
      before = made;
      await sleep(150);
    }
    expect(made).toBeLessThan(500);
    socket.destroy();
    await released;
  });

  test('completes the response to a reading client when the signal aborts', async () => {
    const until = new AbortController();
    let returned = false;
    await serve(() => {
      const source = {
        count: 0,
        // The source yields only one chunk and does not end.
        next() {
          return this.count++ === 0 ? Promise.resolve({ value: 'a', done: false }) : new Promise<never>(() => {});
        },
        return() {
          returned = true;
          return Promise.resolve({ value: undefined, done: true as const });
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
      return new Stream(source, { until: until.signal });
    });
    const answer = await fetch(`${url}/api/v1/lines`);
    until.abort();
    expect(await answer.text()).toBe('a');
    expect(returned).toBe(true);
  });

  test('disconnects a client that does not read when the signal aborts', async () => {
    const until = new AbortController();
    await serve(() => {
      async function* endless() {
        for (;;) yield Buffer.alloc(65_536);
      }
      return new Stream(endless(), { until: until.signal });
    });
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => {});
    socket.write('GET /api/v1/lines HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'readable');
    await sleep(200);
    until.abort();
    // The connection is closed without the final chunk, so the client can detect that the response is incomplete.
    let text = '';
    socket.on('data', (bytes: Buffer) => {
      text = bytes.subarray(-5).toString('latin1');
    });
    await once(socket, 'close');
    expect(text).not.toBe('0\r\n\r\n');
  });

  test('does not start a stream’s source for HEAD', async () => {
    let started = false;
    await serve(() => {
      async function* endless() {
        started = true;
        for (;;) yield 'a';
      }
      return new Stream(endless());
    });
    const answer = await fetch(`${url}/api/v1/lines`, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('content-type'), started]).toEqual([200, 'application/jsonl', false]);
    expect(answer.headers.get('content-length')).toBeNull();
  });

  test('refuses a handler result that is not a stream or has an undeclared status', async () => {
    let given: unknown = 'text';
    await serve(() => given);
    expect((await fetch(`${url}/api/v1/lines`)).status).toBe(500);
    given = new Reply(202, new Stream(pieces('a')));
    expect((await fetch(`${url}/api/v1/lines`)).status).toBe(500);
    given = new Reply(202, { later: true });
    expect(await (await fetch(`${url}/api/v1/lines`)).json()).toEqual({ later: true });
  });

  test('streams a response to the client package', async () => {
    await serve(() => new Stream(pieces('a\n', 'b\n')));
    const call = createClient({
      url,
      transport: async ({ url, method, headers, stream }) => {
        expect(headers.accept).toBe('application/jsonl, text/plain, application/json');
        const answer = await fetch(url, { method, headers });
        const header = (name: string) => answer.headers.get(name);
        if (!stream) throw new Error('a stream is wanted');
        return { status: answer.status, header, text: () => answer.text(), body: answer.body! };
      },
    });
    const answer = await call(lines, {});
    if (!('body' in answer)) throw new Error('not a stream');
    expect(answer.type).toBe('application/jsonl');
    const read: Uint8Array[] = [];
    for await (const piece of answer.body) read.push(piece);
    expect(Buffer.concat(read).toString()).toBe('a\nb\n');
  });

  test('derives a stream’s types from the route', () => {
    expectTypeOf<Stream>().toExtend<Answer<typeof lines>>();
    expectTypeOf<Reply<200, Stream>>().toExtend<Answer<typeof lines>>();
    expectTypeOf<string>().not.toExtend<Answer<typeof lines>>();
    expectTypeOf<Reply<202, Stream>>().not.toExtend<Answer<typeof lines>>();
  });
});
