import { apiPrefix, type Route, routes } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { newKey } from '../../test/domain.ts';
import { type RealApi, realApiFixture, tokenOf } from '../../test/real-api.ts';
import { samplesFixture } from '../../test/samples.ts';
import { addOperator, removeOperator } from '../domain/operators/operators.ts';
import { hashOfToken } from '../domain/operators/sessions.ts';

/**
 * Tests the permissions of every route, including streams, for every kind of caller, and which error the orchestrator
 * reports if a request has several. Uses the real domain.
 */

/** Routes that end the request's own session. */
const endsSession: readonly string[] = ['logout', 'renew', 'openConsoleSession', 'endSessions'];

const openApi = realApiFixture();

/** Admin-only routes. A change to this list changes what operators are permitted to do. */
const forAdmins = [
  'POST /operators',
  'DELETE /operators/{operator_id}',
  'POST /operators/{operator_id}/remove',
  'POST /channels',
  'PUT /channels/{id}',
  'DELETE /channels/{id}',
  'POST /channels/{id}/test',
  'POST /maintenance-windows',
  'PUT /maintenance-windows/{id}',
  'DELETE /maintenance-windows/{id}',
  'DELETE /audit',
  'PUT /audit/retention',
  'GET /enrolment-tokens',
  'POST /enrolment-tokens',
  'DELETE /enrolment-tokens/{id}',
  'GET /settings',
  'POST /replicas/{name}/drain',
  'POST /replicas/{name}/undrain',
  'POST /secrets/rotate-key',
];
const forAnyone = ['POST /auth/challenge', 'POST /auth/verify', 'POST /auth/web-login/redeem', 'GET /status'];
const titleOf = ({ method, path }: Route) => `${method} ${path}`;

/** `Authorization` header for each kind of caller. */
type Callers = Record<string, string | undefined>;

async function callersOf({ domain, actor, key }: RealApi) {
  const { context, signIn, clock } = domain;
  const join = async (username: string, role: 'admin' | 'operator' = 'operator') => {
    const one = await newKey();
    await addOperator(context, actor, { public_key: one.hex, username, role });
    return { id: one.id, key: one, token: await tokenOf(domain, one) };
  };
  const old = await tokenOf(domain, key);
  clock.advance(3_601_000);
  const operator = await join('olga');
  const removed = await join('greta', 'admin');
  const removedUnseen = await join('gunnar', 'admin');
  const out = await join('otto', 'admin');
  // The session of the first token is in memory; the session of the second token is only in the database.
  for (const { token } of [removed, out]) await signIn.find(hashOfToken(token));
  for (const { id } of [removed, removedUnseen]) await removeOperator(context, actor, id);
  await signIn.logout(hashOfToken(out.token));
  const strangers: Callers = {
    'without a token': undefined,
    'with another scheme': `Basic ${operator.token}`,
    'with an empty token': 'Bearer ',
    'with a token nobody has': `Bearer ${'A'.repeat(43)}`,
    'with the hash of a live token': `Bearer ${hashOfToken(operator.token)}`,
    'with two tokens': `Bearer ${operator.token}, Bearer ${operator.token}`,
    'whose session has expired': `Bearer ${old}`,
    'who has signed out': `Bearer ${out.token}`,
    'who was removed': `Bearer ${removed.token}`,
    'who was removed and not seen before': `Bearer ${removedUnseen.token}`,
  };
  return { strangers, operator: `Bearer ${operator.token}`, admin: `Bearer ${await tokenOf(domain, key)}` };
}

interface RequestParts {
  params?: Record<string, string>;
  query?: Record<string, string>;
  payload?: string;
  type?: string;
}

function ask({ app }: RealApi, route: Route, authorization: string | undefined, parts: RequestParts = {}) {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parts.params?.[name] ?? 'x'));
  const payload = parts.payload ?? (route.body ? JSON.stringify(route.example.body ?? {}) : undefined);
  return app.inject({
    method: route.method,
    url: `${apiPrefix}${path}`,
    query: { ...route.example.query, ...parts.query },
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...(payload === undefined ? {} : { 'content-type': parts.type ?? 'application/json' }),
      ...(route.respondAsync ? { prefer: 'respond-async' } : {}),
    },
    ...(payload === undefined ? {} : { payload }),
  });
}

/**
 * Yields invalid requests for a route, with the expected statuses. The orchestrator checks for these errors only after
 * it checks the caller's permissions.
 */
function* faultsOf(route: Route): Generator<[why: string, asked: RequestParts, status: number]> {
  yield ['a parameter nobody knows', { query: { qwxyz: '1' } }, 400];
  if (route.method === 'GET') return;
  yield ['a body of another type', { payload: 'a=b', type: 'text/plain' }, 415];
  yield ['a body that is no JSON', { payload: '{"x":' }, 400];
  yield ['a body above the maximum size', { payload: `"${'x'.repeat(route.bodyLimit ?? 1024 * 1024)}"` }, 413];
}

describeAnyDatabase('access', (fixture) => {
  const stores = samplesFixture(fixture);
  const open = async () => {
    const api = await openApi(fixture, await stores.open());
    const callers = await callersOf(api);
    // No agents are connected, so routes that wait for an agent respond immediately.
    api.domain.connected.clear();
    let writes = 0;
    let refusals = 0;
    const write = api.domain.db.write.bind(api.domain.db);
    api.domain.db.write = (unit) => {
      if (unit.name === 'audit/refused') refusals++;
      else writes++;
      return write(unit);
    };
    return { api, ...callers, writes: () => writes, refusals: () => refusals };
  };

  test('declares the expected access for each route', () => {
    const of = (access: Route['access']) => routes.filter((route) => route.access === access).map(titleOf);
    expect(of('admin').sort()).toEqual([...forAdmins].sort());
    expect(of('anyone').sort()).toEqual([...forAnyone].sort());
  });

  test('returns 401 to callers without a live session before it reports errors in the request, and changes nothing', async () => {
    const { api, strangers, writes } = await open();
    const before = writes();
    for (const route of routes.filter(({ access }) => access !== 'anyone'))
      for (const [who, authorization] of Object.entries(strangers)) {
        const what = `${titleOf(route)} ${who}`;
        const answer = await ask(api, route, authorization, { params: { node_id: api.agent.id, name: 'base' } });
        expect(answer.statusCode, what).toBe(401);
        expect(answer.json(), what).toMatchObject({ code: 'unauthenticated', status: 401 });
        expect(answer.headers['www-authenticate'], what).toMatch(/^Bearer realm="muster"/);
        if (who !== 'without a token' && who !== 'who was removed') continue;
        for (const [why, parts] of faultsOf(route))
          expect((await ask(api, route, authorization, parts)).statusCode, `${what}, ${why}`).toBe(401);
      }
    expect(writes()).toBe(before);
    await api.app.close();
  });

  test('returns 403 to operators on admin routes before it reports errors in the request, and changes nothing', async () => {
    const { api, operator, writes, refusals } = await open();
    const before = writes();
    const forbidden = routes.filter(({ access }) => access === 'admin');
    for (const route of forbidden)
      for (const [why, parts] of [['', {}], ...faultsOf(route)] as const) {
        const answer = await ask(api, route, operator, parts);
        expect(answer.statusCode, `${titleOf(route)} ${why}`).toBe(403);
        expect(answer.json()).toMatchObject({ code: 'forbidden' });
      }
    expect(writes()).toBe(before);
    // The audit log contains one refusal for each route.
    expect(refusals()).toBe(forbidden.length);
    await api.app.close();
  });

  test('reports a malformed request to callers with the required role, even if the record does not exist', async () => {
    const { api, operator, admin } = await open();
    const url = await api.app.listen({ host: '127.0.0.1', port: 0 });
    for (const route of routes.filter(({ access }) => access !== 'anyone'))
      for (const [who, authorization] of Object.entries({ operator, admin })) {
        if (who === 'operator' && route.access === 'admin') continue;
        const what = `${titleOf(route)} as ${who}`;
        // Errors in the request are reported before missing records.
        for (const [why, parts, status] of faultsOf(route))
          expect((await ask(api, route, authorization, parts)).statusCode, `${what}, ${why}`).toBe(status);
        if (endsSession.includes(route.id)) continue;
        if (route.id === 'followEvents') {
          const controller = new AbortController();
          const { signal } = controller;
          const stream = await fetch(`${url}${apiPrefix}${route.path}`, { headers: { authorization }, signal });
          expect(stream.status, what).toBe(200);
          controller.abort();
          continue;
        }
        const answer = await ask(api, route, authorization);
        if (route.path.includes('{') || route.id === 'startRun')
          expect(answer.statusCode, `${what} ${answer.body}`).toBe(404);
        else expect([401, 403, 404], `${what} ${answer.body}`).not.toContain(answer.statusCode);
      }
    await api.app.close();
  });
});
