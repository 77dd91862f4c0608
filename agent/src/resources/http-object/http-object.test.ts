import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ResolvedResource, ResourceBodies } from '@muster/protocol/module';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { machineWith } from '../../converge/test/machine-with.ts';
import type { Circumstances, Machine } from '../provider/provider.ts';
import { hiddenPointers, type ObjectBefore } from './diff.ts';
import { httpObject } from './http-object.ts';

/** Tests the provider with a real server. The subjects in e2e/hosts/http-api run the engine with a service. */

interface Request {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

let server: Server;
let origin: string;
let requests: Request[];
let answer: (request: Request, response: ServerResponse) => void;

beforeEach(async () => {
  requests = [];
  server = createServer(async (incoming, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const { method = '', url: path = '', headers } = incoming;
    const request = { method, path, headers, body: Buffer.concat(pieces).toString() };
    requests.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const stop = new AbortController();
const machine = (): Machine => Object.assign(machineWith(), { stop: stop.signal, cancelled: () => false });
const declared = (body: Partial<ResourceBodies['http-object']>) =>
  ({
    ...{ type: 'http-object', identity: 'x', sensitive_fields: [] },
    body: { url: `${origin}/a?token=x`, wait: 0, ...body },
  }) as unknown as ResolvedResource<'http-object'>;
const at = (purpose: Circumstances['purpose'], succeeded: ResolvedResource | null = null) =>
  ({ purpose, succeeded }) as Circumstances;
const observe = (resource: ResolvedResource<'http-object'>, purpose: Circumstances['purpose'] = 'plan') =>
  httpObject.observe(resource, at(purpose), machine());

/** Serves one object, which a write replaces. */
function storing(object: unknown, hidden: readonly string[] = []): { object: unknown } {
  const store = { object };
  answer = ({ method, body }, response) => {
    if (method === 'DELETE') store.object = undefined;
    else if (method !== 'GET') {
      const sent = JSON.parse(body) as Record<string, unknown>;
      store.object = Object.fromEntries(Object.entries(sent).filter(([key]) => !hidden.includes(key)));
    }
    response.statusCode = store.object === undefined ? 404 : 200;
    response.end(JSON.stringify(store.object));
  };
  return store;
}

async function apply(resource: ResolvedResource<'http-object'>, before: ObjectBefore | null = null) {
  const seen = await observe(resource, 'apply');
  const difference = httpObject.diff(resource, seen, at('apply'));
  const remembered = await httpObject.remember(resource, seen, difference, before, machine());
  return { difference, remembered, outcome: await httpObject.apply(resource, seen, difference, machine()) };
}

async function remove(resource: ResolvedResource<'http-object'>, before: ObjectBefore) {
  const seen = await httpObject.observeForRemoval(resource, before, machine());
  const difference = httpObject.diffRemoval(resource, before, seen, at('apply'), { read: () => null });
  const outcome =
    difference.action === 'none' ? null : await httpObject.remove(resource, before, seen, difference, machine());
  return { difference, outcome };
}

test('changes the declared keys, and restores them', async () => {
  const store = storing({ id: 1, tags: ['a'], limits: { cpu: 1, memory: 2 } });
  const resource = declared({ body: { tags: ['b'], limits: { cpu: 2 } } });
  const { difference, remembered } = await apply(resource);
  expect(difference).toMatchObject({
    action: 'update',
    changes: [{ field: 'body', from: '{"tags":["a"],"limits":{"cpu":1}}', to: '{"tags":["b"],"limits":{"cpu":2}}' }],
  });
  expect(store.object).toEqual({ tags: ['b'], limits: { cpu: 2 } });
  expect(httpObject.diff(resource, await observe(resource), at('apply')).action).toBe('none');
  expect(await remove(resource, remembered)).toMatchObject({ difference: { action: 'remove' }, outcome: {} });
  expect(store.object).toEqual({ tags: ['a'], limits: { cpu: 1 } });
});

test('creates an object, and deletes it on removal', async () => {
  const store = storing(undefined);
  const resource = declared({ body: { a: 1 }, create_method: 'POST', create_url: `${origin}/all` });
  const { remembered, outcome } = await apply(resource);
  expect([remembered, outcome]).toEqual([{ was: 'absent' }, {}]);
  expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'GET /a?token=x',
    'POST /all',
    'GET /a?token=x',
  ]);
  await remove(resource, remembered);
  expect(store.object).toBeUndefined();
  expect((await remove(resource, remembered)).difference).toMatchObject({ action: 'none', message: 'already removed' });
});

test('restores a whole object that it deleted', async () => {
  const store = storing({ id: 1, a: { b: null } });
  const absent = declared({ ensure: 'absent' });
  const { remembered } = await apply(absent);
  expect(store.object).toBeUndefined();
  const { outcome } = await remove(absent, remembered);
  expect([outcome, store.object]).toEqual([{}, { id: 1, a: { b: null } }]);
});

test('sends write-only keys when their declaration changes, and never reports them', async () => {
  const store = storing({ name: 'ada' }, ['password']);
  const resource = declared({ body: { name: 'ada', password: 'one' }, write_only: ['password'] });
  const { difference, remembered } = await apply(resource);
  expect(difference.changes).toEqual([{ field: 'write_only', from: null, to: '/password' }]);
  expect(requests[1]?.body).toBe('{"name":"ada","password":"one"}');
  const seen = await observe(resource);
  expect(httpObject.diff(resource, seen, at('drift', resource)).action).toBe('none');
  const other = declared({ body: { name: 'ada', password: 'two' }, write_only: ['/password'] });
  expect(JSON.stringify(httpObject.diff(other, seen, at('plan', resource)))).toMatch(/^(?!.*two).*write_only/);
  expect(JSON.stringify(remembered)).not.toContain('one');
  store.object = { name: 'eve' };
  const { difference: restoring } = await remove(resource, remembered);
  expect(restoring.message).toContain('keeps the value of /password');
  expect(requests.at(-2)?.body).toBe('{"name":"ada","password":"one"}');
  expect(hiddenPointers(other.body)).toEqual([['password']]);
});

test('reads the object at a pointer, and reads plain text unchanged', async () => {
  answer = (_request, response) => response.end('{"users": [{"a": 1, "b": 2}]}');
  const resource = declared({ body: { a: 1 }, read_at: '/users/0' });
  expect(await observe(resource)).toEqual({ missing: null, isPresent: true, part: { a: 1 } });
  expect(await observe(declared({ body: {}, read_at: '/users/1' }))).toMatchObject({ isPresent: false });
  answer = (_request, response) => response.end('on\n');
  const text = declared({ body: 'off' });
  expect(httpObject.diff(text, await observe(text), at('plan')).changes).toEqual([
    { field: 'body', from: 'on\n', to: 'off' },
  ]);
});

test('authenticates, and replaces headers regardless of their case', async () => {
  storing({ a: 1 });
  await observe(
    declared({ body: { a: 1 }, username: 'ann', password: 'pä:ss', headers: { Accept: 'text/x', 'X-A': 'b' } }),
  );
  expect(requests[0]?.headers).toMatchObject({
    authorization: `Basic ${Buffer.from('ann:pä:ss').toString('base64')}`,
    accept: 'text/x',
    'x-a': 'b',
  });
});

test.each<[string, (request: Request, response: ServerResponse) => void, RegExp]>([
  [
    'a redirect',
    (_, to) => to.writeHead(302, { location: 'http://u:pass@evil.example/x?y' }).end(),
    /redirects to http:\/\/evil\.example\/x, and/,
  ],
  [
    'an unexpected status',
    (_, to) => to.writeHead(400).end('secret'),
    /^GET http:\/\/127[^?]*\/a: the server answers 400$/,
  ],
  ['text', (_, to) => to.end('<html>'), /the answer is not JSON/],
  [
    'a compressed answer',
    (_, to) => to.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
    /compressed the answer/,
  ],
])('refuses %s', async (_name, how, message) => {
  answer = how;
  await expect(observe(declared({ body: {} }))).rejects.toThrow(message);
});

test.each<[string, (request: Request, response: ServerResponse) => void, RegExp]>([
  ['an endless answer', endless, /larger than 1048576 bytes/],
  ['an answer that never ends', (_, to) => to.write('{'), /did not answer within 1 s/],
  ['large headers', (_, to) => to.writeHead(200, { 'x-a': 'a'.repeat(64 * 1024) }).end(), /Header/i],
  ['refused credentials', (_, to) => to.writeHead(401).end(), /does not accept the credentials/],
  ['a closed connection', (_, to) => to.destroy(), /socket hang up|ECONNRESET/],
])('plans to wait for the server after %s', async (_name, how, message) => {
  answer = how;
  const resource = declared({ body: {}, timeout: 1 });
  const seen = await observe(resource);
  expect(httpObject.diff(resource, seen, at('plan'))).toMatchObject({
    action: 'create',
    awaits: [{ kind: 'servers', message: expect.stringMatching(message) }],
  });
  expect(() => httpObject.diff(resource, seen, at('drift'))).toThrow(message);
  expect(() => httpObject.diffRemoval(resource, { was: 'absent' }, seen, at('apply'), { read: () => null })).toThrow(
    message,
  );
});

function endless(_request: Request, response: ServerResponse): void {
  const more = (): void => {
    while (!response.destroyed && response.write('a'.repeat(64 * 1024)));
    if (!response.destroyed) response.once('drain', more);
  };
  more();
}

test('waits in an apply until the server answers', async () => {
  let left = 2;
  answer = (_request, response) => {
    response.statusCode = left-- > 0 ? 503 : 404;
    response.end();
  };
  expect(await observe(declared({ body: {}, wait: 30 }), 'apply')).toMatchObject({ missing: null, isPresent: false });
  left = 100;
  expect(await observe(declared({ body: {}, wait: 1 }), 'apply')).toMatchObject({
    missing: { message: expect.stringContaining('(503), for 1 s') },
  });
});

test("reports a refused write with the server's message, and a write that has no effect", async () => {
  answer = ({ method }, response) => {
    response.statusCode = method === 'PUT' ? 409 : 200;
    response.end(method === 'PUT' ? 'two\u0007 \n conflict' : '{"a": 0}');
  };
  expect((await apply(declared({ body: { a: 1 } }))).outcome).toEqual({
    failure: `PUT ${origin}/a: the server answers 409`,
    words: ': two conflict',
  });
  answer = (_request, response) => response.end('{"a": 0}');
  expect((await apply(declared({ body: { a: 1 } }))).outcome.failure).toMatch(
    /accepted PUT, but answers other values for \/a; declare/,
  );
});

test('refuses to change an object that is too large to restore', async () => {
  storing({ a: 'x'.repeat(300 * 1024) });
  await expect(apply(declared({ body: { a: 'y' } }))).rejects.toThrow('larger than 256 KiB');
});

test.each<[Partial<ResourceBodies['http-object']>, string]>([
  [{ body: {}, write_url: 'http://127.0.0.1:1/a' }, '`write_url` must have the scheme, host, and port of `url`'],
  [{ body: {}, create_url: 'https://127.0.0.1/a' }, '`create_url` must have the scheme'],
  [{ body: { a: 1 }, write_only: ['b/c'] }, '`body` has no key /b/c, which `write_only` names'],
  [{}, '`body` is required'],
])('refuses %j', (body, message) => {
  expect(() => httpObject.check(declared(body))).toThrow(message);
});
