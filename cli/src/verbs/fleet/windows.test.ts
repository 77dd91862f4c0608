import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeCertificate } from '../../../test/certificate.ts';
import { type Standing, standIn } from '../../../test/orchestrator.ts';
import { makeHome, musterHere as run } from '../../../test/process.ts';

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let env: Record<string, string>;

beforeAll(async () => {
  const certificate = await makeCertificate();
  server = await standIn({ tls: certificate });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
  await run(['operator', 'init'], env);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});
beforeEach(() => {
  server.seen.length = 0;
});

const muster = (...args: string[]) => run(['windows', ...args], env, '');
const sent = (id: string) => server.seen.find(({ route }) => route.id === id)?.body;
const at = (month: number, day: number) => new Date(2027, month - 1, day).getTime() / 1000;

test('adds a window from one day to another, including the last day', async () => {
  const ran = await muster('add', 'move', '--from', '2027-01-30', '--until', '2027-01-31');
  expect(ran.exit, ran.stderr).toBe(0);
  expect(sent('createWindow')).toEqual({ reason: 'move', starts_at: at(1, 30), ends_at: at(2, 1) });
});

test('moves the end of a window to the end of a day', async () => {
  const ran = await muster('update', '01KAGZ8S4F6G7H8J9K0M1N2P3Q', '--until', '2027-01-31');
  expect(ran.exit, ran.stderr).toBe(0);
  expect(sent('updateWindow')).toEqual({ ends_at: at(2, 1) });
});

test('refuses a day that does not exist before sending a request', async () => {
  const ran = await muster('add', 'move', '--until', '2027-02-30');
  expect(ran.exit).toBe(2);
  expect(ran.stderr).toContain('"2027-02-30" is not a time');
  expect(server.seen).toEqual([]);
});
