import type { ErrorCode } from '@muster/protocol';
import { errorsOf, type Route, routes } from '@muster/protocol/http';
import fc from 'fast-check';
import type { FastifyInstance } from 'fastify';
import { expect, test } from 'vitest';
import { anyRequest, type BadRequest, badBodies, badParams, badQueries } from '../../test/bad-input.ts';
import { describeAnyDatabase } from '../../test/databases/databases.ts';
import { type Domain, newAgent, newKey, reportsOf, resultOf } from '../../test/domain.ts';
import { consume, placedEvent } from '../../test/placed-events.ts';
import { moduleText, type RealApi, realApiFixture } from '../../test/real-api.ts';
import { sampleAt, samplesFixture } from '../../test/samples.ts';
import { createAssignment } from '../domain/modules/assignments.ts';
import { uploadModule } from '../domain/modules/modules.ts';
import { createWindow } from '../domain/modules/windows.ts';
import { listNotifications, notificationsOf } from '../domain/notifications/notifications.ts';
import { submitOperation } from '../domain/operations/operations.ts';

/** Tests the routes with the real domain and a real database. Every response is validated against its schema. */

/** Routes that end the request's own session. */
const endsSession: readonly string[] = ['logout', 'renew', 'openConsoleSession', 'endSessions'];

const open = realApiFixture();
type Opened = RealApi;

/** Creates a completed operation and a resolved drift record for the routes that return them. */
async function history({ domain, actor, agent }: Opened) {
  const { context, links } = domain;
  const operationRequest = { kind: 'apply', modules: ['m'], queue: true } as const;
  const operation = await submitOperation(context, actor, 'web-1', operationRequest);
  await links.nextOperation(agent.id);
  const output = { stdout: 'hi\n', stderr: '', exit_code: 0, truncated: false };
  await links.reported(agent.id, '01'.repeat(16), 1, [
    ...reportsOf(operation, [resultOf({ module: 'm', id: 'f', identity: '/f' })], { now: domain.now() }).slice(0, 2),
    { type: 'output', operation_id: operation, resource: 'm/f', ...output },
    ...reportsOf(operation, [resultOf()], { now: domain.now() }).slice(2),
  ]);
  return operation;
}

/** Simulates an agent that completes every operation immediately. @returns a function that stops the simulation */
function answering({ links, now }: Domain, nodeId: string): () => void {
  let seq = 100;
  let busy = false;
  const timer = setInterval(async () => {
    if (busy) return;
    busy = true;
    const next = await links.nextOperation(nodeId).catch(() => null);
    if (next)
      await links.reported(nodeId, '01'.repeat(16), ++seq, reportsOf(next.operation.operation_id, [], { now: now() }));
    busy = false;
  }, 5);
  return () => clearInterval(timer);
}

function request(app: FastifyInstance, token: string, route: Route, params: Record<string, string>, body: unknown) {
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? 'x'));
  // Query parameters for routes that require them.
  const query = route.query?.safeParse({}).success === false ? { query: route.example.query ?? {} } : {};
  return app.inject({
    method: route.method,
    url: `/api/v1${path}`,
    ...query,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(route.respondAsync ? { prefer: 'respond-async' } : {}),
    },
    ...(body === undefined ? {} : { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
}

const keys = fc.constantFrom(
  ...['name', 'modules', 'selector', 'content', 'tags', 'value', 'status', 'public_key', 'username', 'role', 'ttl'],
  ...['parameters', 'mode', 'uses', 'expires_in', 'constructor', 'toString', 'hasOwnProperty', '', 'x'],
);
const leaves = fc.oneof(
  fc.constantFrom('web-1', 'm', 'base', 'role=web', 'approved', 'rejected', 'constructor', '..', ' ', '\u0007', '💥'),
  fc.constantFrom(0, -1, 1, 1e300, 2 ** 53, null, true, ''),
  fc.string(),
  fc.integer(),
);
const { body: anyBody } = fc.letrec<{ body: unknown; value: unknown }>((tie) => ({
  body: fc.dictionary(keys, tie('value'), { maxKeys: 6 }),
  value: fc.oneof({ depthSize: 'small' }, leaves, fc.array(tie('value'), { maxLength: 4 }), tie('body')),
}));

/** Returns the name in the route's example path; without an example, the name of the fixture's assignment. */
const nameOf = ({ path, example }: Route): string =>
  path.startsWith('/modules') ? 'm' : (example.params?.name ?? 'base');

describeAnyDatabase('the API', (fixture) => {
  const stores = samplesFixture(fixture);
  test('returns a response that matches its schema on each route', async () => {
    const opened = await open(fixture, await stores.open());
    const { app, token, agent, key, domain } = opened;
    const operation_id = await history(opened);
    const { session_id } = await opened.terminals.open({ actor: opened.actor, role: 'admin' }, 'web-1', {});
    await opened.metrics.record(agent.id, [sampleAt(domain.now() - 60, { uptime: 5 })]);
    const stop = answering(domain, agent.id);
    const seen: Record<string, number> = {};
    // Calls routes that create records first and routes that remove records last.
    const order = ({ method, path }: Route) =>
      method === 'DELETE' ? 1 : method === 'POST' && !path.includes('{') ? -1 : 0;
    const bodies: Record<string, unknown> = {
      challenge: { public_key: key.hex },
      verify: { public_key: key.hex, signature: '5f'.repeat(64) },
      addOperator: { public_key: (await newKey()).hex, username: 'bob', role: 'operator' },
      applyAgent: { modules: ['m'] },
      planAgent: { modules: ['m'] },
      startRun: { kind: 'plan', node_ids: [agent.id], modules: ['m'] },
      orderModules: { modules: ['m'] },
      uploadModule: { name: 'm', content: moduleText },
      setAgentStatus: { status: 'approved', name: 'web-1' },
      createAssignment: { name: 'other', modules: ['m'], selector: 'role=db' },
    };
    let run_id = 'x';
    let drift_id = 'x';
    /** IDs of the created records, keyed by the tag of the route that created them. */
    const made: Record<string, string> = {};
    await consume(domain, notificationsOf(domain.context), [placedEvent(domain, 1_000_000)]);
    const { notifications } = await listNotifications(domain.context, key.id, {});
    made.Notifications = notifications[0]?.id ?? 'x';
    for (const route of [...routes].sort((a, b) => order(a) - order(b))) {
      if (endsSession.includes(route.id)) continue;
      // This stream does not end. events.contract.test.ts covers it.
      if (route.id === 'followEvents') continue;
      const params = { node_id: agent.id, name: nameOf(route), key: 'role' };
      const more = { operator_id: key.id, operation_id, run_id, drift_id, session_id, id: made[route.tag] ?? 'x' };
      const body = bodies[route.id] ?? (route.body ? route.example.body : undefined);
      const answer = await request(app, token, route, { ...params, ...more }, body);
      seen[route.id] = answer.statusCode;
      if (answer.statusCode === 201 && 'id' in answer.json()) made[route.tag] = answer.json().id;
      if (route.id === 'applyAssignment') run_id = answer.json().run_id;
      if (route.id === 'checkDrift') drift_id = answer.json().drift_id;
    }
    stop();
    const refused = Object.fromEntries(Object.entries(seen).filter(([, status]) => status >= 300));
    // The run may have ended before this request.
    expect([undefined, 409]).toContain(refused.cancelRun);
    delete refused.cancelRun;
    expect(refused).toEqual({
      verify: 401, // the signature is not valid
      redeemWebLogin: 401, // the login code is not valid
      endSession: 404, // no such session
      getModuleFile: 404, // the module is a single text without files
      acceptDrift: 409, // the machine is in sync
      cancelOperation: 409,
      drainReplica: 404,
      removeAgent: 409,
      removeModule: 409, // the assignment `other` uses the module
      removeOperator: 409, // the last admin
      removeOperatorReporting: 409,
      undrainReplica: 404,
    });
    await app.close();
  });

  test('returns no 5xx for an invalid body', async () => {
    const { app, token, agent } = await open(fixture, await stores.open());
    const writing = routes.filter((route) => route.body && route.access !== 'anyone');
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...writing), anyBody, fc.boolean(), async (route, body, byName) => {
        const params = { node_id: byName ? 'web-1' : agent.id, name: 'base', key: 'constructor', id: 'x' };
        const answer = await request(app, token, route, params, body);
        expect(answer.statusCode, `${route.id} ${JSON.stringify(body)}: ${answer.body}`).toBeLessThan(500);
        if (answer.statusCode >= 400) expect(answer.json()).toMatchObject({ code: expect.any(String) });
      }),
      { numRuns: 150 },
    );
    expect((await app.inject({ url: '/api/v1/tags', headers: { authorization: `Bearer ${token}` } })).statusCode).toBe(
      200,
    );
    await app.close();
  });

  /** Returns path parameters that refer to existing records. */
  const paramsOf = (route: Route, { agent, key }: Opened): Record<string, string> => ({
    node_id: agent.id,
    operator_id: key.id,
    name: nameOf(route),
    key: 'role',
  });
  const send = (opened: Opened, route: Route, bad: Partial<BadRequest>) => {
    const known = paramsOf(route, opened);
    const path = route.path.replace(
      /\{(\w+)\}/g,
      (_, name: string) => bad.params?.[name] ?? encodeURIComponent(known[name] ?? 'x'),
    );
    const query = bad.query ?? new URLSearchParams(route.example.query ?? {}).toString();
    const payload = bad.payload ?? (route.body ? JSON.stringify(route.example.body ?? {}) : undefined);
    return opened.app.inject({
      method: route.method,
      url: `/api/v1${path}${query === '' ? '' : `?${query}`}`,
      headers: {
        authorization: `Bearer ${opened.token}`,
        ...(payload === undefined ? {} : { 'content-type': bad.type ?? 'application/json' }),
        ...(route.respondAsync ? { prefer: 'respond-async' } : {}),
      },
      ...(payload === undefined ? {} : { payload }),
    });
  };
  // Excludes endless streams, and routes that would end this test's sign-in session.
  const walked = routes.filter(({ id, media }) => !endsSession.includes(id) && media === undefined);
  /** Reports whether the route declares this error code, and the code means no failure of the orchestrator or its storage. */
  const mayFail = (route: Route, code: string) =>
    errorsOf(route).includes(code as ErrorCode) && !['internal', 'storage_unavailable', 'storage_full'].includes(code);
  const checkForm = (route: Route, answer: Awaited<ReturnType<typeof send>>, what: string) => {
    if (answer.statusCode < 400) return;
    const problem = answer.json() as { code: string; status: number; errors?: { path: string }[] };
    expect(problem.status, what).toBe(answer.statusCode);
    if (answer.statusCode >= 500) expect(mayFail(route, problem.code), `${what}: ${answer.body}`).toBe(true);
    if (problem.code === 'invalid_input') expect(problem.errors?.length, `${what}: ${answer.body}`).toBeGreaterThan(0);
  };

  test('reports the location of each error in a request', async () => {
    const opened = await open(fixture, await stores.open());
    const wrong: string[] = [];
    for (const route of walked)
      for (const bad of [...badBodies(route), ...badQueries(route), ...badParams(route)]) {
        const answer = await send(opened, route, bad);
        const what = `${route.id} ${bad.why}`;
        checkForm(route, answer, what);
        if (bad.status === undefined) continue;
        const problem = answer.body === '' ? {} : answer.json();
        const named =
          bad.path === undefined ||
          problem.errors?.some(({ path }: { path: string }) => path.startsWith(bad.path ?? ''));
        if (answer.statusCode !== bad.status || !named)
          wrong.push(`${what}: ${answer.statusCode} ${answer.body.slice(0, 300)}`);
      }
    expect(wrong).toEqual([]);
    await opened.app.close();
  });

  test('returns no 5xx for a generated request', async () => {
    const opened = await open(fixture, await stores.open());
    const requests = fc.constantFrom(...walked).chain((route) => fc.tuple(fc.constant(route), anyRequest(route)));
    await fc.assert(
      fc.asyncProperty(requests, async ([route, { payload, query, param }]) => {
        const params = Object.fromEntries(
          Object.keys(param === undefined ? {} : (route.params?.shape ?? {})).map((name) => [
            name,
            encodeURIComponent((param as string).toWellFormed()),
          ]),
        );
        const bad = {
          params,
          ...(query === undefined ? {} : { query }),
          ...(payload === undefined ? {} : { payload }),
        };
        checkForm(route, await send(opened, route, bad), `${route.id} ${JSON.stringify(bad)}`);
      }),
      { numRuns: 400 },
    );
    await opened.app.close();
  });

  test('returns lists in pages, with links to the next page', async () => {
    const opened = await open(fixture, await stores.open());
    const { app, token, domain, actor } = opened;
    const { context } = domain;
    await newAgent(domain, actor, 'web-2');
    for (const name of ['m2', 'm3'])
      await uploadModule(context, actor, name, moduleText.replace('name: m\n', `name: ${name}\n`));
    for (const name of ['b2', 'b3']) await createAssignment(context, actor, { name, modules: ['m'], selector: 'a=b' });
    for (const reason of ['x', 'y', 'z']) await createWindow(context, actor, { starts_at: 1, ends_at: 2, reason });
    const get = async (url: string) => {
      const answer = await app.inject({ url, headers: { authorization: `Bearer ${token}` } });
      expect(answer.statusCode, `${url} ${answer.body}`).toBe(200);
      return {
        items: answer.json() as unknown[],
        next: /^<([^>]*)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1],
      };
    };
    const lengths: Record<string, number> = {};
    for (const route of routes.filter(({ paged }) => paged)) {
      const known = paramsOf(route, opened);
      const url = `/api/v1${route.path.replace(/\{(\w+)\}/g, (_, name: string) => known[name] ?? 'x')}`;
      const whole = await get(url);
      expect(whole.next, route.id).toBeUndefined();
      expect(await get(`${url}?limit=0`)).toEqual({ items: [], next: undefined });
      expect((await get(`${url}?limit=${'9'.repeat(30)}`)).items).toEqual(whole.items);
      expect((await get(`${url}?offset=${'9'.repeat(15)}`)).items).toEqual([]);
      const found: unknown[] = [];
      for (let next: string | undefined = `${url}?limit=1`; next !== undefined; ) {
        const part: Awaited<ReturnType<typeof get>> = await get(next);
        expect(part.items.length, route.id).toBeLessThanOrEqual(1);
        found.push(...part.items);
        next = part.next;
      }
      expect(found, route.id).toEqual(whole.items);
      lengths[route.id] = found.length;
    }
    expect(lengths).toMatchObject({ listAgents: 2, listModules: 3, listAssignments: 3, listWindows: 3 });
    await app.close();
  });

  test('accepts an approved agent’s name instead of its id on all routes', async () => {
    const opened = await open(fixture, await stores.open());
    const { app, token, agent } = opened;
    await history(opened);
    const reading = routes.filter(({ method, path }) => method === 'GET' && path.includes('{node_id}'));
    expect(reading.length).toBeGreaterThan(5);
    for (const route of reading) {
      const [byId, byName, byUnknown] = await Promise.all(
        [agent.id, 'web-1', 'web-9'].map((node_id) => request(app, token, route, { node_id }, undefined)),
      );
      expect(byName?.statusCode, route.id).toBe(byId?.statusCode);
      expect(byName?.statusCode === 404 ? '' : byName?.body, route.id).toBe(byId?.statusCode === 404 ? '' : byId?.body);
      expect(byUnknown?.statusCode, route.id).toBe(404);
    }
    await app.close();
  });

  test('refuses text that cannot be encoded in a response', async () => {
    const { app, token } = await open(fixture, await stores.open());
    const create = routes.find(({ id }) => id === 'createAssignment')!;
    const body = '{"name":"n","modules":["m"],"selector":"a=b","description":"a\\u0000b"}';
    const answer = await request(app, token, create, {}, body);
    expect(answer.statusCode).toBe(400);
    expect(answer.json().errors).toMatchObject([{ path: '/description', message: expect.stringContaining('U+0000') }]);
    await app.close();
  });
});
