import { routes } from '@muster/protocol/http';
import { expect, test } from 'vitest';
import { addressOf, bearer, testApp } from '../../../test/app-fixture.ts';
import { growsNothing, refuseGrowth } from './low-disk.ts';

/** What is refused while the disk is nearly full. A route that is added to the table is on one side or the other by a decision. */
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

test('what would grow is refused, and nothing else', () => {
  expect(
    routes
      .filter((route) => !growsNothing(route))
      .map(({ id }) => id)
      .sort(),
  ).toEqual(refused);
});

test('every route answers 507 or as always, by whether it grows; who may not do it learns that first', async () => {
  const app = testApp({}, { requireRoom: (route) => refuseGrowth(route, false) });
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

test('with the rows on another machine only a terminal, whose transcript is here, is refused', () => {
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
