import { routes } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { addressOf, bearer, testApp } from '../../../test/app-fixture.ts';
import { growsNothing, refuseGrowth } from './low-disk.ts';

/** Routes that are refused while the disk is nearly full. Add a route here if it stores data. */
const refused = [
  'acceptDrift',
  'addOperator',
  'applyAgent',
  'applyAssignment',
  'checkDrift',
  'createAssignment',
  'createChannel',
  'createEnrolmentToken',
  'createSecret',
  'createWindow',
  'openTerminal',
  'planAgent',
  'planAssignment',
  'putTag',
  'putTags',
  'rotateSecretsKey',
  'startRun',
  'updateAssignment',
  'updateChannel',
  'updateSecret',
  'updateWindow',
  'uploadModule',
];

test('refuses exactly the routes that add data while the disk is nearly full', () => {
  expect(
    routes
      .filter((route) => !growsNothing(route))
      .map(({ id }) => id)
      .sort(),
  ).toEqual(refused);
});

test('returns 507 after the permission check on routes that add data, and does not affect other routes', async () => {
  const app = testApp({}, { requireDiskSpace: (route) => refuseGrowth(route, false) });
  for (const route of routes) {
    const request = {
      method: route.method as 'GET',
      url: addressOf(route),
      query: route.example.query ?? {},
      ...(route.body === undefined ? {} : { payload: route.example.body as object }),
    };
    const { statusCode, body } = await app.inject({ ...request, headers: bearer('admin') });
    if (!refused.includes(route.id)) expect(statusCode, route.id).toBeLessThan(300);
    else expect([statusCode, JSON.parse(body).code], route.id).toEqual([507, 'storage_full']);
    if (route.access !== 'anyone') expect((await app.inject(request)).statusCode, route.id).toBe(401);
  }
  await app.close();
});

test('refuses only terminals if the database is on another machine', () => {
  const thrown = routes.filter((route) => {
    try {
      refuseGrowth(route, true);
      return false;
    } catch {
      return true;
    }
  });
  expect(thrown.map(({ id }) => id)).toEqual(['openTerminal']);
});
