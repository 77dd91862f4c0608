import { errorKinds, MusterError } from '@muster/protocol';
import { errorsOf, type Route, routes } from '@muster/protocol/http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { codePoint } from '../../../protocol/test/code-point.ts';
import { addressOf, bearer, exampleAnswer, testApp } from '../../test/app-fixture.ts';
import type { Handlers } from './server/handlers.ts';

/** Verifies rules that apply to all routes in the table. */
const app = testApp();
type Method = 'GET';
const body = (route: Route) => (route.body === undefined ? {} : { payload: route.example.body as object });

describe('every route', () => {
  test.each(routes)('follows the rules for routes: $method $path', async (route) => {
    const request = { method: route.method as Method, url: addressOf(route), ...body(route) };
    const query = route.example.query ?? {};
    const defaultStatus = Math.min(...Object.keys(route.answers).map(Number));

    const stranger = await app.inject({ ...request, query });
    expect(stranger.statusCode).toBe(route.access === 'anyone' ? defaultStatus : 401);

    const operator = await app.inject({ ...request, query, headers: bearer('operator') });
    expect(operator.statusCode, operator.body).toBe(route.access === 'admin' ? 403 : defaultStatus);

    const admin = await app.inject({ ...request, query, headers: bearer('admin') });
    expect(admin.statusCode).toBe(defaultStatus);
    if (defaultStatus === 204) expect(admin.body).toBe('');
    else if (route.media?.[defaultStatus]) expect(admin.body).toBe(route.example.answer);
    else expect(admin.json()).toEqual(JSON.parse(JSON.stringify(route.example.answer)));

    const typo = await app.inject({ ...request, query: { ...query, qwxyz: '1' }, headers: bearer('admin') });
    expect(typo.json()).toMatchObject({ status: 400, errors: [{ path: '/qwxyz' }] });

    if (route.method !== 'GET') {
      const unknown = await app.inject({
        ...request,
        query,
        payload: { ...(route.example.body as object), qwxyz: 1 },
        headers: bearer('admin'),
      });
      expect(unknown.json()).toMatchObject({ status: 400, errors: [{ path: '/qwxyz' }] });
    }
  });

  test('gives each route a unique path and ID', () => {
    const addresses = routes.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`);
    expect(new Set(addresses).size).toBe(routes.length);
    expect(new Set(routes.map(({ id }) => id)).size).toBe(routes.length);
  });

  test('returns pages on every route with an unbounded list', () => {
    const bounded = ['listChannels', 'listReplicas'];
    const whole = routes.filter(({ answers, paged }) => answers[200] instanceof z.ZodArray && !paged);
    expect(whole.map(({ id }) => id).filter((id) => !bounded.includes(id))).toEqual([]);
    for (const { id, query } of routes.filter(({ paged }) => paged))
      expect(Object.keys(query?.shape ?? {}), id).toEqual(expect.arrayContaining(['limit', 'offset']));
  });

  test('accepts null for optional fields on every route', async () => {
    for (const route of routes.filter(({ bodyOptional }) => bodyOptional)) {
      const names = Object.keys((route.body as unknown as { shape: object }).shape);
      const answer = await app.inject({
        method: route.method as Method,
        url: addressOf(route),
        payload: Object.fromEntries(names.map((name) => [name, null])),
        headers: bearer('admin'),
      });
      expect(answer.statusCode, `${route.id} ${answer.body}`).toBeLessThan(300);
    }
  });
});

describe('hostile input', () => {
  let turn = 0;
  const handlers = Object.fromEntries(
    routes.map((route) => [
      route.id,
      () => {
        const code = route.errors[turn++ % (route.errors.length + 1)];
        if (code !== undefined && errorKinds[code].status < 500) throw new MusterError(code, 'refused');
        return exampleAnswer(route);
      },
    ]),
  ) as unknown as Handlers;
  const target = testApp(handlers);

  const shaped = (route: Route) => {
    const example = route.example.body as Record<string, unknown> | undefined;
    return fc.oneof(
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc.string(),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      // Nearly valid requests: each example with one field replaced.
      fc
        .tuple(fc.constantFrom(...Object.keys(example ?? { x: 1 })), fc.jsonValue())
        .map(([key, value]) => JSON.stringify({ ...example, [key]: value })),
    );
  };

  test('returns neither 5xx nor an undeclared error for random bodies, queries, and IDs', async () => {
    const anywhere = ['route_not_found', 'method_not_allowed'];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...routes).chain((route) => fc.tuple(fc.constant(route), shaped(route))),
        fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'nonsense', undefined),
        fc.oneof(fc.constant(''), fc.webQueryParameters(), fc.string().map(encodeURI)),
        fc.string({ unit: codePoint }),
        async ([route, payload], type, query, id) => {
          const url = `/api/v1${route.path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(id.toWellFormed()))}`;
          const answer = await target.inject({
            method: route.method as Method,
            url: query === '' ? url : `${url}?${query.replaceAll('#', '')}`,
            headers: { ...bearer('admin'), ...(type === undefined ? {} : { 'content-type': type }) },
            ...(route.method === 'GET' ? {} : { payload }),
          });
          expect(answer.statusCode, answer.body).toBeLessThan(500);
          if (answer.statusCode < 400) return;
          const problem = answer.json() as { code: string; status: number };
          expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
          expect(problem.status).toBe(answer.statusCode);
          expect([...errorsOf(route), ...anywhere]).toContain(problem.code);
        },
      ),
      { numRuns: 600 },
    );
  });
});
