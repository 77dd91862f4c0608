import { routes } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { addressOf, bearer, testApp } from '../../../test/app-fixture.ts';
import { allowed, growsNothing, refuseGrowth } from './low-disk.ts';

const refused = routes.filter((route) => !growsNothing(route));

test('refuses routes that may add data', () => {
  expect(growsNothing({ id: 'newRoute', method: 'POST' })).toBe(false);
  expect(refused.map(({ id }) => id)).toEqual(expect.arrayContaining(['createSecret', 'applyAgent', 'putTags']));
});

test('lists only existing routes, and no GET or DELETE routes, which are always allowed', () => {
  const changing = routes.filter(({ method }) => method !== 'GET' && method !== 'DELETE').map(({ id }) => id);
  expect(changing).toEqual(expect.arrayContaining([...allowed]));
});

test('returns 507 after the permission check on routes that add data, and does not affect other routes', async () => {
  const app = testApp({}, { requireDiskSpace: (route) => refuseGrowth(route) });
  for (const route of routes) {
    const request = {
      method: route.method as 'GET',
      url: addressOf(route),
      query: route.example.query ?? {},
      ...(route.body === undefined ? {} : { payload: route.example.body as object }),
    };
    const { statusCode, body } = await app.inject({ ...request, headers: bearer('admin') });
    if (!refused.includes(route)) expect(statusCode, route.id).toBeLessThan(300);
    else expect([statusCode, JSON.parse(body).code], route.id).toEqual([507, 'storage_full']);
    if (route.access !== 'anyone') expect((await app.inject(request)).statusCode, route.id).toBe(401);
  }
  await app.close();
});
