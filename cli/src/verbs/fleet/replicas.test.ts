import { drainReplica, listReplicas, type Replica, undrainReplica } from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { makeCertificate } from '../../../test/certificate.ts';
import { type Answer, type Seen, type Standing, standIn } from '../../../test/orchestrator.ts';
import { makeHome, musterHere as run } from '../../../test/process.ts';

let home: Awaited<ReturnType<typeof makeHome>>;
let server: Standing;
let env: Record<string, string>;
const answers: Record<string, (seen: Seen) => Answer | undefined> = {};

beforeAll(async () => {
  const certificate = await makeCertificate();
  server = await standIn({ tls: certificate, answers });
  home = await makeHome();
  env = { ...home.env, MUSTER_URL: server.url, MUSTER_FINGERPRINT: certificate.fingerprint };
  await run(['operator', 'init'], env);
});
afterAll(async () => {
  await server.close();
  await home.remove();
});
beforeEach(() => {
  for (const id of Object.keys(answers)) delete answers[id];
  server.seen.length = 0;
});

const muster = (...args: string[]) => run(['replicas', ...args], env, '');
const [replica] = listReplicas.example.answer as [Replica];

test('lists replicas with their states, and marks the one that responded', async () => {
  const others = [
    { ...replica, name: 'b', this_replica: false, draining: true },
    { ...replica, name: 'c', this_replica: false, ready: false, config_digest: null },
  ];
  answers.listReplicas = () => ({ body: [replica, ...others] });
  const ran = await muster('list');
  expect(ran.exit, ran.stderr).toBe(0);
  const rows = ran.stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
  expect(rows[1]).toEqual(expect.arrayContaining(['muster-1 *', 'ready', '3334', '3', '1.2s', '0.1.0', '5f5f5f5f']));
  expect(rows[2]).toEqual(expect.arrayContaining(['b', 'draining']));
  expect(rows[3]).toEqual(expect.arrayContaining(['c', 'not ready', 'unknown']));
});

test('explains why the list of replicas is empty', async () => {
  answers.listReplicas = () => ({ body: [] });
  const ran = await muster('list');
  expect(ran).toMatchObject({ exit: 0, stdout: '' });
  expect(ran.stderr).toContain('This orchestrator uses its database alone: replica.name is not set.');
  expect(JSON.parse((await muster('list', '--json')).stdout)).toEqual([]);
});

test('waits until a drained replica has no agents and leases left', async () => {
  const rest = [
    { ...replica, draining: true, connected_agents: 400 },
    { ...replica, draining: true, connected_agents: 0, leases: [] },
  ];
  answers.listReplicas = () => ({ body: [rest.shift()] });
  const ran = await muster('drain', 'muster-1', '--json');
  expect(ran.exit, ran.stderr).toBe(0);
  expect(JSON.parse(ran.stdout)).toMatchObject({ name: 'muster-1', connected_agents: 0, leases: [] });
  expect(server.seen.map(({ route }) => route.id).filter((id) => id !== 'challenge' && id !== 'verify')).toEqual([
    'drainReplica',
    'listReplicas',
    'listReplicas',
  ]);
});

test('stops waiting when a drained replica has exited, and does not wait with --no-wait', async () => {
  answers.listReplicas = () => ({ body: [] });
  expect(JSON.parse((await muster('drain', 'muster-1', '--json')).stdout)).toMatchObject({ connected_agents: 0 });
  server.seen.length = 0;
  const ran = await muster('drain', 'muster-1', '--no-wait');
  expect(ran.stdout).toContain('Draining muster-1. See: muster replicas list');
  expect(server.seen.some(({ route }) => route.id === 'listReplicas')).toBe(false);
});

test('explains why the last replica cannot be drained', async () => {
  answers[drainReplica.id] = () => ({ code: 'last_replica', detail: 'no replica other than a is ready' });
  const ran = await muster('drain', 'a');
  expect(ran.exit).not.toBe(0);
  expect(ran.stderr).toContain('no replica other than a is ready');
});

test('reports that another request has undrained a replica while it waits', async () => {
  answers.listReplicas = () => ({ body: [{ ...replica, draining: false }] });
  const ran = await muster('drain', 'muster-1');
  expect(ran.exit).toBe(1);
  expect(ran.stderr).toContain('another request has undrained muster-1');
});

test('says that a drained replica waits for another one, and fails if none becomes ready', async () => {
  const drained = { ...replica, draining: true, connected_agents: 400 };
  const peer = { ...replica, name: 'b', incarnation: 'b' };
  answers.listReplicas = () => ({ body: [drained, { ...peer, ready: false }] });
  const ran = await muster('drain', 'muster-1');
  expect(ran.exit).toBe(1);
  expect(ran.stderr).toContain('Waiting until another replica is ready: muster-1 keeps 400 agents and 3 leases.');
  expect(ran.stderr).toContain('muster-1 keeps 400 agents and 3 leases, because no other replica is ready');
  expect(ran.stderr).toContain('muster replicas undrain muster-1');
  // A replica that is ready again in time lets the agents move.
  const rest = [[drained], [drained, peer], [{ ...drained, connected_agents: 0, leases: [] }]];
  answers.listReplicas = () => ({ body: rest.shift() });
  expect((await muster('drain', 'muster-1')).stdout).toContain('Drained muster-1.');
});

test('stops waiting if a drained replica moves nothing, or an undrained one does not become ready', async () => {
  const peer = { ...replica, name: 'b', incarnation: 'b' };
  answers.listReplicas = () => ({ body: [{ ...replica, draining: true, connected_agents: 1, leases: [] }, peer] });
  const stalled = await muster('drain', 'muster-1');
  expect(stalled.exit).toBe(1);
  expect(stalled.stderr).toContain('muster-1 still has 1 agents and 0 leases; none of them has moved for 120 s');
  answers[undrainReplica.id] = () => ({ body: { ...replica, ready: false } });
  answers.listReplicas = () => ({ body: [{ ...replica, ready: false }] });
  const unready = await muster('undrain', 'muster-1');
  expect(unready.exit).toBe(1);
  expect(unready.stderr).toContain('muster-1 is not ready 60 s after it was undrained');
});

test('waits until an undrained replica is ready', async () => {
  answers[undrainReplica.id] = () => ({ body: { ...replica, ready: false } });
  const rest = [{ ...replica, ready: false }, replica];
  answers.listReplicas = () => ({ body: [rest.shift()] });
  const ran = await muster('undrain', 'muster-1');
  expect(ran.exit, ran.stderr).toBe(0);
  expect(ran.stdout).toContain('muster-1 is used again.');
  expect(rest).toEqual([]);
  server.seen.length = 0;
  expect(JSON.parse((await muster('undrain', 'muster-1', '--no-wait', '--json')).stdout)).toMatchObject({
    ready: false,
  });
  expect(server.seen.some(({ route }) => route.id === 'listReplicas')).toBe(false);
});

test('fails if an undrained replica ends or is drained again before it is ready', async () => {
  answers[undrainReplica.id] = () => ({ body: { ...replica, ready: false } });
  answers.listReplicas = () => ({ body: [] });
  const ended = await muster('undrain', 'muster-1');
  expect(ended.exit).toBe(1);
  expect(ended.stderr).toContain('muster-1 has ended');
  answers.listReplicas = () => ({ body: [{ ...replica, draining: true }] });
  expect((await muster('undrain', 'muster-1')).stderr).toContain('another request has drained or stopped muster-1');
});
