import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { MusterError } from '@muster/protocol';
import { agentExample, nodeExample } from '@muster/protocol/http';
import type { InjectOptions } from 'fastify';
import { describe, expect, test } from 'vitest';
import { bearer, exampleHandlers, keepingLog, sessions, testApp, tokens } from '../../test/app-fixture.ts';
import { noteWrite } from '../request-fields.ts';
import { createApp } from './app.ts';
import { hashToken } from './server/authentication.ts';
import { type CallOf, Reply } from './server/handlers.ts';

const agents = '/api/v1/agents';
const agent = `${agents}/${nodeExample}`;
const admin = bearer('admin');
const post = (url: string, payload: string, headers: Record<string, string> = {}) =>
  ({ method: 'POST', url, payload, headers: { ...admin, 'content-type': 'application/json', ...headers } }) as const;

describe('sessions and roles', () => {
  test('passes the token’s session to the handler', async () => {
    let seen: CallOf<'getAgent'> | undefined;
    const app = testApp({
      getAgent: (call) => {
        seen = call;
        return agentExample;
      },
    });
    const answer = await app.inject({ url: agent, headers: bearer('operator') });
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual(agentExample);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(seen?.session).toMatchObject({ username: 'operator', role: 'operator' });
    expect(seen?.params).toEqual({ node_id: nodeExample });
    expect(seen?.request).toMatchObject({ ip: '127.0.0.1', secure: false, loopback: true });
  });

  test.each([
    ['none', {}, 'Bearer realm="muster"'],
    ['another scheme', { authorization: 'Basic YTpi' }, 'Bearer realm="muster", error="invalid_token"'],
    ['an unknown one', { authorization: 'Bearer nobody' }, 'Bearer realm="muster", error="invalid_token"'],
    ['an endless one', { authorization: `Bearer ${'a'.repeat(5000)}` }, 'Bearer realm="muster", error="invalid_token"'],
  ])('returns 401 for a missing or invalid token: %s', async (_name, headers, challenge) => {
    const answer = await testApp().inject({ url: agent, headers });
    expect(answer.statusCode).toBe(401);
    expect(answer.headers['www-authenticate']).toBe(challenge);
    expect(answer.json()).toMatchObject({ code: 'unauthenticated', status: 401 });
  });

  test('waits for an asynchronous session lookup, and returns 500 if it fails', async () => {
    const later = testApp({}, { sessions: { find: async (token) => sessions.find(token) } });
    expect((await later.inject({ url: agent, headers: admin })).statusCode).toBe(200);
    expect((await later.inject({ url: agent, headers: { authorization: 'Bearer no' } })).statusCode).toBe(401);
    for (const find of [
      () => {
        throw new Error('sessions are gone');
      },
      () => Promise.reject(new Error('sessions are gone')),
    ]) {
      const broken = testApp({}, { sessions: { find } });
      expect((await broken.inject({ url: agent, headers: admin })).statusCode).toBe(500);
    }
  });

  test('finds the session of each request on a connection', async () => {
    const ended = new Set<string>();
    const app = testApp(
      { getAgent: ({ session }) => ({ ...agentExample, name: session.username }) },
      { sessions: { find: (hash) => (ended.has(hash) ? null : sessions.find(hash)) } },
    );
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    const connection = new Agent({ keepAlive: true, maxSockets: 1 });
    const read = async (headers: Record<string, string>) => {
      const [answer] = (await once(get(url + agent, { headers, agent: connection }), 'response')) as [IncomingMessage];
      const body = JSON.parse(await text(answer));
      return answer.statusCode === 200 ? body.name : body.code;
    };
    for (const role of ['admin', 'admin', 'operator', 'admin', 'operator'] as const)
      expect(await read(bearer(role))).toBe(role);
    ended.add(hashToken(tokens.operator));
    const unknown = Array.from({ length: 20 }, (_, n) => ({ authorization: `Bearer nobody-${n}` }));
    for (const headers of [bearer('operator'), {}, ...unknown]) expect(await read(headers)).toBe('unauthenticated');
    expect(await read(bearer('admin'))).toBe('admin');
    connection.destroy();
    await app.close();
  });

  test('accepts the Bearer scheme in any letter case', async () => {
    const answer = await testApp().inject({ url: agent, headers: { authorization: `bearer ${tokens.admin}` } });
    expect(answer.statusCode).toBe(200);
  });
});

describe('order of refusal', () => {
  const huge = `{"status":"${'x'.repeat(1_100_000)}"}`;
  test('returns 401 without reading the request body', async () => {
    const app = testApp();
    for (const payload of ['{', huge]) {
      const answer = await app.inject({ ...post(agent, payload), headers: { 'content-type': 'application/json' } });
      expect(answer.statusCode).toBe(401);
    }
    const xml = await app.inject({
      method: 'POST',
      url: agent,
      payload: '<a/>',
      headers: { 'content-type': 'text/xml' },
    });
    expect(xml.statusCode).toBe(401);
  });

  test('reports 401, 403, 413, 415, 400, and handler errors in this order', async () => {
    const app = testApp({
      setAgentStatus: () => {
        throw new MusterError('agent_not_found', 'no agent has this id');
      },
    });
    const code = async (request: InjectOptions) => {
      const answer = await app.inject(request);
      const { code, status } = answer.json() as { code: string; status: number };
      expect(answer.statusCode).toBe(status);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      return `${status} ${code}`;
    };
    expect(await code(post('/api/v1/operators', '{', bearer('operator')))).toBe('403 forbidden');
    expect(await code(post(agent, huge))).toBe('413 body_too_large');
    expect(await code(post(agent, '<a/>', { 'content-type': 'text/xml' }))).toBe('415 unsupported_media_type');
    expect(await code(post(agent, '{', { 'content-type': 'nonsense' }))).toBe('415 unsupported_media_type');
    expect(await code(post(agent, '{}', { 'content-type': 'application/json; charset=latin1' }))).toBe(
      '415 unsupported_media_type',
    );
    expect(await code(post(agent, '{}', { 'content-encoding': 'gzip' }))).toBe('415 unsupported_media_type');
    expect(await code(post(agent, '{'))).toBe('400 malformed_json');
    expect(await code(post(agent, ''))).toBe('400 malformed_json');
    expect(await code(post(agent, '{}'))).toBe('400 invalid_input');
    expect(await code(post(`${agent}?x=1`, '{"status":"approved"}'))).toBe('400 invalid_input');
    expect(await code(post(agent, '{"status":"approved"}'))).toBe('404 agent_not_found');
    expect(await code(post(`${agents}/no%20such%20thing`, '{"status":"approved"}'))).toBe('404 agent_not_found');
    expect(await code(post(`${agents}/${'a'.repeat(3000)}`, '{"status":"approved"}'))).toBe('404 agent_not_found');
  });

  test('returns 404 or 405 for missing routes, but 401 without a session under /api/v1', async () => {
    const app = testApp();
    const ask = (method: 'GET' | 'PUT' | 'OPTIONS' | 'PATCH', url: string, headers = {}) =>
      app.inject({ method: method as 'GET', url, headers });
    expect((await ask('GET', '/api/v1/nothing')).statusCode).toBe(401);
    expect((await ask('GET', '/api/v1')).statusCode).toBe(401);
    expect((await ask('PUT', agent)).statusCode).toBe(401);
    expect((await ask('GET', '/api/v1/%zz')).statusCode).toBe(401);
    expect((await ask('GET', '/api/v1/nothing', admin)).json()).toMatchObject({ status: 404, code: 'route_not_found' });
    expect((await ask('GET', '/api/v1/%zz', admin)).json()).toMatchObject({ status: 400, code: 'malformed_request' });
    expect((await ask('GET', '/api/v1/agents/%ff', admin)).json()).toMatchObject({ status: 400 });
    expect((await ask('GET', '/nothing')).json()).toMatchObject({ status: 404, code: 'route_not_found' });
    expect((await ask('GET', '/%zz')).json()).toMatchObject({ status: 400, code: 'malformed_request' });
    for (const method of ['PUT', 'PATCH', 'OPTIONS'] as const) {
      const wrong = await ask(method, agent, admin);
      expect(wrong.json()).toMatchObject({ status: 405, code: 'method_not_allowed' });
      expect(wrong.headers.allow).toBe('DELETE, GET, HEAD, POST');
      expect(Object.keys(wrong.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
    for (const page of ['/healthz', '/readyz', '/openapi.json']) {
      const wrong = await ask('PUT', page);
      expect(wrong.json()).toMatchObject({ status: 405, code: 'method_not_allowed' });
      expect(wrong.headers.allow).toBe('GET, HEAD');
    }
    expect((await ask('PUT', '/nothing')).statusCode).toBe(404);
    // A fixed path takes precedence over a path with a parameter.
    expect((await ask('GET', '/api/v1/modules/validate', admin)).statusCode).toBe(200);
  });
});

describe('input', () => {
  test('accepts an empty body, with or without a content type, if every field is optional', async () => {
    const bodies: unknown[] = [];
    const app = testApp({
      applyAssignment: ({ body }) => {
        bodies.push(body);
        throw new MusterError('assignment_not_found');
      },
    });
    const url = '/api/v1/assignments/base/apply';
    for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/plain' }])
      expect((await app.inject({ method: 'POST', url, headers: { ...admin, ...headers } })).statusCode).toBe(404);
    expect((await app.inject(post(url, '{"ttl":null}'))).statusCode).toBe(404);
    expect(bodies.map((body) => (body as { ttl?: number }).ttl)).toEqual([undefined, undefined, undefined, undefined]);
  });

  test('accepts a missing body or an empty object on a route without a body', async () => {
    const app = testApp();
    const logout = '/api/v1/auth/logout';
    expect((await app.inject({ method: 'POST', url: logout, headers: admin })).statusCode).toBe(204);
    expect((await app.inject(post(logout, '{}'))).statusCode).toBe(204);
    expect((await app.inject(post(logout, '{"all":true}'))).json()).toMatchObject({
      status: 400,
      errors: [{ path: '/all', message: 'unknown field' }],
    });
    expect((await app.inject(post(logout, '[]'))).statusCode).toBe(400);
  });

  test('converts query parameters, and refuses unknown and repeated parameters on every route', async () => {
    const limits: unknown[] = [];
    const app = testApp({
      listAgents: ({ query }) => {
        limits.push(query.limit);
        return [];
      },
    });
    const get = async (query: string) => app.inject({ url: agents + query, headers: admin });
    expect((await get('?limit=0')).statusCode).toBe(200);
    expect((await get('?limit=999999999')).statusCode).toBe(200);
    expect((await get('')).statusCode).toBe(200);
    expect(limits).toEqual([0, 100_000, undefined]);
    for (const query of ['?limit=-1', '?limit=x', '?limit=', '?limit=1&limit=2', '?filter=%zz', '?__proto__=1'])
      expect((await get(query)).json(), query).toMatchObject({ status: 400, code: 'invalid_input' });
    expect((await get('?limt=1')).json()).toMatchObject({
      errors: [{ path: '/limt', message: 'unknown parameter: did you mean "limit"?' }],
    });
    expect((await app.inject({ url: '/api/v1/status?verbose=1' })).statusCode).toBe(400);
  });

  test('accepts larger bodies on module routes than on other routes', async () => {
    const content = 'x'.repeat(1_500_000);
    const answer = await testApp().inject(post('/api/v1/modules', JSON.stringify({ name: 'motd', content })));
    expect(answer.statusCode).toBe(201);
  });
});

describe('responses', () => {
  test('confirms respond-async in the headers of a 202 response', async () => {
    const asyncFlags: boolean[] = [];
    const operation = exampleHandlers().getOperation({} as never) as never;
    const app = testApp({
      applyAgent: ({ respondAsync }) => {
        asyncFlags.push(respondAsync);
        return respondAsync ? new Reply(202, operation, { location: '/api/v1/state/operations/1' }) : operation;
      },
      checkDrift: ({ respondAsync }) => {
        asyncFlags.push(respondAsync);
        throw new MusterError('nothing_applied');
      },
    });
    const apply = post(`${agent}/apply`, '{"modules":[]}', { prefer: 'wait=5, respond-async' });
    const accepted = await app.inject(apply);
    expect(accepted.statusCode).toBe(202);
    expect(accepted.headers).toMatchObject({
      location: '/api/v1/state/operations/1',
      'preference-applied': 'respond-async',
    });
    const waited = await app.inject(post(`${agent}/apply`, '{"modules":[]}'));
    expect(waited.statusCode).toBe(200);
    expect(waited.headers['preference-applied']).toBeUndefined();
    // The route for drift checks does not support `respond-async`.
    expect((await app.inject(post(`${agent}/drift`, '', { prefer: 'respond-async' }))).statusCode).toBe(409);
    expect(asyncFlags).toEqual([true, false, false]);
  });

  test('sends the detail of an error, or its remedy if it has no detail', async () => {
    const app = testApp({
      getAgent: () => {
        throw new MusterError('agent_not_found');
      },
      setAgentStatus: async () => {
        throw new MusterError('selector_invalid', 'column 3: a value is missing', [
          { path: '/filter', message: 'a value is missing', column: 3 },
        ]);
      },
    });
    const missing = await app.inject({ url: agent, headers: admin });
    expect(missing.json()).toEqual({
      type: 'urn:muster:error:agent_not_found',
      title: 'No such agent',
      status: 404,
      detail: 'List the agents with `muster agents list`.',
      instance: expect.stringMatching(/^[0-9a-f]{12}-[0-9a-z]+$/),
      code: 'agent_not_found',
    });
    expect((await app.inject(post(agent, '{"status":"approved"}'))).json()).toMatchObject({
      detail: 'column 3: a value is missing',
      errors: [{ path: '/filter', column: 3 }],
    });
  });

  test('returns 500 without details for a bug, and logs the bug with the same request ID', async () => {
    const { log, lines } = keepingLog();
    const app = testApp({ getAgent: () => Promise.reject(new Error('password=hunter2')) }, { log });
    const answer = await app.inject({ url: agent, headers: admin });
    expect(answer.statusCode).toBe(500);
    expect(answer.body).not.toContain('hunter2');
    const { instance } = answer.json() as { instance: string };
    const line = lines.find(({ err }) => err !== undefined);
    expect(line).toMatchObject({
      request_id: instance,
      err: { message: 'password=hunter2', stack: expect.stringContaining('app.test.ts') },
    });
  });

  test('validates responses if `validateAnswers` is set', async () => {
    const wrong = { ...agentExample, password: 'x' };
    const app = testApp({ getAgent: () => wrong, removeAgent: () => 'text' as never });
    expect((await app.inject({ url: agent, headers: admin })).statusCode).toBe(500);
    expect((await app.inject({ method: 'DELETE', url: agent, headers: admin })).statusCode).toBe(500);
    const trusting = testApp({ getAgent: () => wrong }, { validateAnswers: false });
    expect((await trusting.inject({ url: agent, headers: admin })).statusCode).toBe(200);
  });

  test('responds to HEAD like GET, but without a body', async () => {
    const answer = await testApp().inject({ method: 'HEAD', url: agent, headers: admin });
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toBe('');
    expect((await testApp().inject({ method: 'HEAD', url: agent })).statusCode).toBe(401);
  });
});

describe('all responses', () => {
  test('sends headers that forbid caching, MIME sniffing, and access from other origins', async () => {
    const app = testApp();
    for (const url of [agent, '/api/v1/status', '/nothing', '/%zz', '/openapi.json', '/healthz']) {
      const answer = await app.inject({ url, headers: { origin: 'https://evil.example' } });
      expect(answer.headers, url).toMatchObject({ 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' });
      expect(answer.headers['access-control-allow-origin'], url).toBeUndefined();
      expect(answer.headers['strict-transport-security'], url).toBeUndefined();
    }
  });

  test('limits sign-ins by address and other requests by session, and sends Retry-After', async () => {
    const app = testApp({}, { limits: { rates: { signIn: { perMinute: 60, burst: 2 }, sessionPerSecond: 2 } } });
    const challenge = { method: 'POST', url: '/api/v1/auth/challenge', payload: {} } as const;
    const signIn = [];
    for (let at = 0; at < 3; at++) signIn.push((await app.inject(challenge)).statusCode);
    expect(signIn).toEqual([400, 400, 429]);
    const other = await app.inject({ ...challenge, remoteAddress: '192.0.2.9' });
    expect(other.statusCode).toBe(400);
    const signedIn = [];
    for (let at = 0; at < 3; at++) signedIn.push(await app.inject({ url: agent, headers: admin }));
    expect(signedIn.map(({ statusCode }) => statusCode)).toEqual([200, 200, 429]);
    expect(signedIn[2]?.headers['retry-after']).toBe('1');
    expect(signedIn[2]?.json()).toMatchObject({ code: 'rate_limited' });
    expect((await app.inject({ url: agent, headers: bearer('operator') })).statusCode).toBe(200);
  });

  test('uses forwarding headers only from trusted proxies', async () => {
    const seen: { ip: string; secure: boolean; loopback: boolean }[] = [];
    const handlers = {
      getAgent: ({ request: { ip, secure, loopback } }: CallOf<'getAgent'>) => {
        seen.push({ ip, secure, loopback });
        return agentExample;
      },
    };
    const headers = { ...admin, 'x-forwarded-for': '203.0.113.5', 'x-forwarded-proto': 'https' };
    await testApp(handlers).inject({ url: agent, headers });
    await testApp(handlers, { trustedProxies: ['127.0.0.0/8'] }).inject({ url: agent, headers });
    await testApp(handlers, { trustedProxies: ['10.0.0.1'] }).inject({ url: agent, headers });
    // Sends the request from a local client, and from a remote client that sends a loopback `X-Forwarded-For`.
    const here = { ...admin, 'x-forwarded-for': '127.0.0.1' };
    await testApp(handlers, { trustedProxies: ['127.0.0.0/8'] }).inject({ url: agent, headers: here });
    await testApp(handlers).inject({ url: agent, headers: here });
    await testApp(handlers).inject({ url: agent, headers: { ...admin, forwarded: 'for=203.0.113.5' } });
    await testApp(handlers).inject({ url: agent, headers: admin });
    expect(seen).toEqual([
      // The header is not trusted, but its presence shows that a proxy forwarded the request.
      { ip: '127.0.0.1', secure: false, loopback: false },
      { ip: '203.0.113.5', secure: true, loopback: false },
      { ip: '127.0.0.1', secure: false, loopback: false },
      { ip: '127.0.0.1', secure: false, loopback: true },
      { ip: '127.0.0.1', secure: false, loopback: false },
      { ip: '127.0.0.1', secure: false, loopback: false },
      { ip: '127.0.0.1', secure: false, loopback: true },
    ]);
  });

  test('identifies clients by their socket address, or by the last address that a trusted proxy forwards', async () => {
    const rates = { signIn: { perMinute: 60, burst: 2 }, sessionPerSecond: 1000 };
    const signIn = (forwarded: string) =>
      ({ ...post('/api/v1/auth/challenge', '{"public_key":"ab"}', { 'x-forwarded-for': forwarded }) }) as const;
    const admitted = async (trustedProxies: string[], addresses: string[]) => {
      const app = testApp({}, { limits: { rates }, trustedProxies });
      const statuses = [];
      for (const address of addresses) statuses.push((await app.inject(signIn(address))).statusCode);
      return statuses;
    };
    const three = ['203.0.113.1', '203.0.113.2', '203.0.113.3'];
    expect(await admitted([], three)).toEqual([200, 200, 429]);
    expect(await admitted(['127.0.0.1'], three)).toEqual([200, 200, 200]);
    // The client controls the first entries, which must be ignored. The proxy appends the last entry.
    const spoofed = three.map((address) => `${address}, 198.51.100.9`);
    expect(await admitted(['127.0.0.1'], spoofed)).toEqual([200, 200, 429]);
    expect(await admitted(['127.0.0.1', '198.51.100.0/24'], spoofed)).toEqual([200, 200, 200]);
    expect(await admitted(['127.0.0.1'], ['x', 'x', 'x'])).toEqual([200, 200, 429]);
  });

  test("derives the origin from the client's request, or from a trusted proxy's headers", async () => {
    const seen: (string | null)[] = [];
    const handlers = {
      getAgent: ({ request }: CallOf<'getAgent'>) => {
        seen.push(request.origin);
        return agentExample;
      },
    };
    const ask = (headers: Record<string, string>, trustedProxies: string[] = []) =>
      testApp(handlers, { trustedProxies }).inject({ url: agent, headers: { ...admin, ...headers } });
    await ask({ host: 'muster.example:4748' });
    await ask({ host: '[::1]:4748' });
    await ask({ host: 'evil.example/x?' });
    await ask({ host: 'a b' });
    const forwarded = { host: 'inner:1', 'x-forwarded-host': 'outer.example', 'x-forwarded-proto': 'https' };
    await ask(forwarded);
    await ask(forwarded, ['127.0.0.1']);
    expect(seen).toEqual([
      'http://muster.example:4748',
      'http://[::1]:4748',
      null,
      null,
      'http://inner:1',
      'https://outer.example',
    ]);
  });

  test('logs requests without tokens, queries, or bodies, and logs successful reads at debug level', async () => {
    const { log, lines } = keepingLog();
    const app = testApp({}, { log });
    await app.inject(post(`${agent}?ticket=t0p-secret`, '{"status":"approved","name":"n4me-secret"}'));
    await app.inject({ url: agent, headers: admin });
    await app.inject({ url: `${agent}/none`, headers: admin });
    expect(JSON.stringify(lines)).not.toMatch(/secret|admin-token/);
    expect(lines.map(({ level, method, path, status }) => ({ level, method, path, status }))).toEqual([
      { level: 30, method: 'POST', path: agent, status: 400 },
      { level: 20, method: 'GET', path: agent, status: 200 },
      { level: 30, method: 'GET', path: `${agent}/none`, status: 404 },
    ]);
    expect(lines[0]).toMatchObject({
      operator_id: expect.any(String),
      ip: '127.0.0.1',
      request_id: expect.any(String),
    });
  });

  test('responds to health and readiness probes', async () => {
    let ready = false;
    const app = testApp({}, { ready: () => ready });
    const ask = async (url: string) => (await app.inject({ url })).statusCode;
    expect([await ask('/healthz'), await ask('/readyz')]).toEqual([200, 503]);
    ready = true;
    expect(await ask('/readyz')).toBe(200);
    app.drain();
    expect([await ask('/healthz'), await ask('/readyz'), await ask('/api/v1/status')]).toEqual([200, 503, 503]);
    const drained = await app.inject({ url: agent, headers: admin });
    expect(drained.json()).toMatchObject({ code: 'draining' });
    expect(drained.headers).toMatchObject({ 'retry-after': '5', connection: 'close' });
  });

  test('answers and logs a bug after a write as an unknown outcome', async () => {
    const { log, lines } = keepingLog();
    const setAgentStatus = (writes: boolean) => () => {
      if (writes) noteWrite();
      throw new TypeError('the code is wrong');
    };
    const answers: unknown[] = [];
    for (const writes of [true, false]) {
      const app = testApp({ setAgentStatus: setAgentStatus(writes) }, { log });
      const { statusCode, body } = await app.inject(post(agent, '{"status":"approved"}'));
      expect(body).not.toContain('the code is wrong');
      answers.push([statusCode, JSON.parse(body).code]);
    }
    expect(answers).toEqual([
      [503, 'outcome_unknown'],
      [500, 'internal'],
    ]);
    expect(lines.filter(({ msg }) => msg === 'request failed')).toMatchObject([
      { level: 50, code: 'outcome_unknown', err: { message: 'the code is wrong' } },
      { level: 50, code: 'internal', err: { message: 'the code is wrong' } },
    ]);
  });

  test('throws at startup if a route has no handler', () => {
    const { getAgent: _, ...rest } = exampleHandlers();
    const { log } = keepingLog();
    // @ts-expect-error: a missing handler is also a compile error
    expect(() => createApp({ handlers: rest, sessions, log, version: '0' })).toThrow(
      'no handler for the route getAgent',
    );
  });
});
