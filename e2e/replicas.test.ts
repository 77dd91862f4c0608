import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { ApiError, createClient } from '@muster/protocol/client';
import {
  applyAgent,
  applyAssignment,
  createAssignment,
  drainReplica,
  getAgent,
  getRun,
  getStatus,
  listAgents,
  listOperations,
  listReplicas,
  logout,
  openTerminal,
  putTag,
  undrainReplica,
  uploadModule,
} from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { FairTime } from '../tools/suite/fair-time.ts';
import { signIn } from './client.ts';
import { CuttingProxy } from './cutting-proxy.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { type AgentProcess, Orchestrator, type Stage, test } from './harness.ts';
import { followEvents, musterOrchestrator, startReplicas, transportOf } from './replica-set.ts';
import { TcpBalancer } from './tcp-balancer.ts';

describe('three replicas on one PostgreSQL database', () => {
  let server: PostgresServer | undefined;
  let missing: PostgresMissing | undefined;
  beforeAll(async () => {
    try {
      server = await startPostgres();
    } catch (error) {
      if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
      missing = error;
    }
  });
  beforeEach(({ skip }) => {
    if (missing) skip(missing.message);
  });
  afterAll(() => server?.stop());

  test('replicas serve agents and operators together, and continue when one of them is killed', async ({
    stage,
    onTestFinished,
  }) => {
    const { a, b, c } = await startReplicas(stage, await server!.createDatabase());
    const replicas = [a, b, c];
    const balancer = new TcpBalancer(replicas.map(({ agentPort }) => agentPort));
    onTestFinished(() => balancer.end());
    const port = await balancer.listen();
    const agents: AgentProcess[] = [];
    for (const name of ['web-0', 'web-1', 'web-2']) {
      const connect = [`127.0.0.1:${port}`, '--orchestrator-key', a.publicKey];
      const agent = stage.agentAt(name, [...connect, '--token', await a.token(name, { role: 'web' })]);
      await agent.start();
      agents.push(agent);
    }
    const token = await signIn(createClient({ url: a.url, transport: transportOf(a) }), a.operator);
    const at = (replica: Orchestrator) =>
      createClient({ url: replica.url, token: async () => token, transport: transportOf(replica) });

    // The balancer connected one agent to each replica, and each replica shows the agents of the other replicas.
    for (const [index, replica] of replicas.entries())
      expect(replica.program.lastLines(1_000).join('\n')).toContain(`"node_id":"${agents[index]!.nodeId}"`);
    for (const replica of replicas)
      await eventually('all agents are connected', async () => {
        const listed = await at(replica)(listAgents, { query: { status: 'approved' } });
        return listed.filter(({ connected }) => connected).length === 3 ? true : null;
      });

    const listed = await at(b)(listReplicas, {});
    expect(listed).toMatchObject([
      { name: 'a', this_replica: false, draining: false, connected_agents: 1 },
      { name: 'b', this_replica: true, draining: false, connected_agents: 1 },
      { name: 'c', this_replica: false, draining: false, connected_agents: 1 },
    ]);
    await eventually('replicas hold all leases', async () => {
      const held = (await at(b)(listReplicas, {})).flatMap(({ leases }) => leases);
      return ['audit', 'upkeep', 'runs/0'].every((name) => held.includes(name)) ? true : null;
    });
    expect(new Set(listed.map(({ config_digest }) => config_digest)).size).toBe(1);
    expect(await at(a)(getStatus, {})).toMatchObject({ status: 'ok', reasons: [] });

    await expectChangesReachAgents(stage, { a, c, agent: agents[1]!, at, token });
    await expectRunSurvives(stage, { a, b, c, agents, at });

    const { reasons } = await eventually('the killed replica is missing', async () => {
      const status = await at(a)(getStatus, {});
      return status.status === 'degraded' ? status : null;
    });
    expect(reasons).toEqual(['replica']);

    await expectDrain({ a, c, agents, at });
    await at(c)(getAgent, { params: { node_id: agents[0]!.nodeId } });
    await at(a)(logout, {});
    // C aborts a request that is in progress when the session ends, so a request may fail without an answer.
    const refusal = await eventually(
      'the session is refused',
      () =>
        at(c)(getAgent, { params: { node_id: agents[0]!.nodeId } }).then(
          () => null,
          (error: unknown) => {
            if (error instanceof ApiError) return error;
            throw error;
          },
        ),
      2_500,
    );
    expect(refusal).toMatchObject({ problem: { code: 'unauthenticated' } });
  });

  test('agents of a replica that has lost the database move to another replica', async ({ stage, onTestFinished }) => {
    const url = new URL(await server!.createDatabase());
    const proxy = new CuttingProxy(Number(url.port));
    onTestFinished(() => proxy.end());
    const through = new URL(url);
    through.port = String(await proxy.listen());
    const port = await freePort();
    const create = (name: string, at: URL) =>
      new Orchestrator(stage, stage.folder(`replica-${name}`), {
        env: { MUSTER_DATABASE_URL: at.href, MUSTER_REPLICA_NAME: name, MUSTER_ADVERTISED_AGENTS: `127.0.0.1:${port}` },
      });
    const [a, b] = [create('a', through), create('b', url)];
    b.agentPort = port;
    await a.start();
    const keys = join(stage.dir, 'keys.age');
    musterOrchestrator('share', a.dataDir, keys);
    musterOrchestrator('join', b.dataDir, keys);
    await b.start();
    const token = await signIn(createClient({ url: a.url, transport: transportOf(a) }), a.operator);
    const atB = createClient({ url: b.url, token: async () => token, transport: transportOf(b) });
    const atA = createClient({ url: a.url, token: async () => token, transport: transportOf(a) });
    // Replica A keeps its agents until it has detected replica B. The heartbeat age is 0 until A has read a heartbeat.
    await eventually('A knows B', async () =>
      (await atA(listReplicas, {})).some(({ name, heartbeat_age_secs }) => name === 'b' && heartbeat_age_secs > 0)
        ? true
        : null,
    );
    // The agent learns the address of B from A.
    const connect = [`127.0.0.1:${a.agentPort}`, '--orchestrator-key', a.publicKey];
    const agent = stage.agentAt('web-0', [...connect, '--token', await a.token('web-0')]);
    await agent.start();
    const owner = async () =>
      (await atB(listReplicas, {})).find(({ connected_agents }) => connected_agents === 1)?.name ?? null;
    expect(await eventually('a replica has the agent', owner)).toBe('a');
    // No new connection reaches the database either.
    proxy.end();
    await eventually('the agent is at B', async () => ((await owner()) === 'b' ? true : null));
    await eventually('A ends, because B has closed it or its lock is lost', async () =>
      (await atB(listReplicas, {})).length === 1 ? true : null,
    );
    expect(a.program.lastLines(1_000).join('\n')).toContain(
      'lost the connection to the database; agents move to other replicas',
    );
    await eventually('B misses A', async () => ((await atB(getStatus, {})).reasons.includes('replica') ? true : null));
  });
});

type ClientAt = (replica: Orchestrator) => ReturnType<typeof createClient>;

/** An operator on replica A changes an agent that is connected to replica B, and follows the events on replica C. */
async function expectChangesReachAgents(
  stage: Stage,
  parts: { a: Orchestrator; c: Orchestrator; agent: AgentProcess; at: ClientAt; token: string },
): Promise<void> {
  const { a, c, agent, at, token } = parts;
  const params = { node_id: agent.nodeId };
  const events = followEvents(c, token);
  await eventually('the stream has begun', async () => (events.text !== '' ? true : null));
  await at(a)(putTag, { params: { ...params, key: 'site' }, body: { value: 'north' } });
  expect((await at(c)(getAgent, { params })).tags).toMatchObject({ site: 'north' });
  await eventually('the event arrives at the other replica', async () =>
    events.text.includes('agent.tagged') ? true : null,
  );
  events.close();

  const script = { program: 'sh', manages: 'a-file', apply: `echo ran >> '${join(stage.dir, 'applied')}'` };
  await at(a)(uploadModule, { body: { name: 'once', content: moduleOf('once', script) } });
  const time = new FairTime();
  expect(await at(a)(applyAgent, { params, body: { modules: ['once'] } })).toMatchObject({ status: 'succeeded' });
  expect(time.elapsedMs()).toBeLessThan(10_000);
  expect(readFileSync(join(stage.dir, 'applied'), 'utf8')).toBe('ran\n');

  const refusal = await at(a)(openTerminal, { params }).then(
    () => null,
    (error: ApiError) => error.problem,
  );
  expect(refusal).toMatchObject({
    code: 'terminal_at_other_replica',
    detail: 'web-1 is connected to the replica b; this replica has no connection to NATS',
  });
}

/** Replica B is killed while all agents execute a run that was started at replica A. */
async function expectRunSurvives(
  stage: Stage,
  parts: { a: Orchestrator; b: Orchestrator; c: Orchestrator; agents: readonly AgentProcess[]; at: ClientAt },
): Promise<void> {
  const { a, b, c, agents, at } = parts;
  const log = join(stage.dir, 'run');
  const apply = `echo started >> '${log}'; sleep 2; echo ended >> '${log}'`;
  await at(a)(uploadModule, {
    body: { name: 'slow', content: moduleOf('slow', { program: 'sh', manages: 'b-file', apply }) },
  });
  await at(a)(createAssignment, { body: { name: 'webs', modules: ['slow'], selector: 'role=web' } });
  const body = { offline: 'queue' as const };
  const { run_id } = await at(a)(applyAssignment, { params: { name: 'webs' }, body, respondAsync: true });
  const lines = () => readFileSync(log, 'utf8').split('\n').filter(Boolean);
  await eventually('all agents execute the run', async () =>
    lines().filter((line) => line === 'started').length === 3 ? true : null,
  );
  await b.kill9();
  await agents[1]!.connected(2);
  const run = await eventually('the run has ended', async () => {
    const run = await at(c)(getRun, { params: { run_id } });
    return run.finished_at === null ? null : run;
  });
  expect(run).toMatchObject({ status: 'succeeded', results: [{}, {}, {}].map(() => ({ status: 'succeeded' })) });
  expect(lines().sort()).toEqual(['ended', 'ended', 'ended', 'started', 'started', 'started']);
  const { operations } = await at(c)(listOperations, { query: { limit: '100' } });
  expect(operations.filter((operation) => operation.run_id === run_id)).toHaveLength(3);
  for (const replica of [a, c])
    await eventually('all agents are connected', async () => {
      const listed = await at(replica)(listAgents, { query: { status: 'approved' } });
      return listed.filter(({ connected }) => connected).length === 3 ? true : null;
    });
}

/** Replica A is drained: its agents and leases move to C, and it keeps running. */
async function expectDrain(parts: {
  a: Orchestrator;
  c: Orchestrator;
  agents: readonly AgentProcess[];
  at: ClientAt;
}): Promise<void> {
  const { a, c, agents, at } = parts;
  await at(c)(drainReplica, { params: { name: 'a' } });
  await eventually('everything has moved to C', async () => {
    const [ofA, ofC] = await at(c)(listReplicas, {});
    return ofA!.connected_agents === 0 && ofA!.leases.length === 0 && ofC!.connected_agents === agents.length
      ? true
      : null;
  });
  const [drained] = await at(a)(listReplicas, {});
  expect(drained).toMatchObject({ name: 'a', this_replica: true, ready: false, draining: true });
  expect(await statusOf(a, '/readyz')).toBe(503);
  expect(await statusOf(c, '/readyz')).toBe(200);
  const refusal = await at(a)(drainReplica, { params: { name: 'c' } }).then(
    () => null,
    (error: ApiError) => error.problem,
  );
  expect(refusal).toMatchObject({ code: 'last_replica' });
  // A drained replica still serves requests that reach it.
  await at(a)(putTag, { params: { node_id: agents[0]!.nodeId, key: 'site' }, body: { value: 'south' } });

  await at(a)(undrainReplica, { params: { name: 'a' } });
  await eventually('A is ready and has work again', async () => {
    const [ofA] = await at(c)(listReplicas, {});
    return ofA!.ready && !ofA!.draining && ofA!.leases.length > 0 ? true : null;
  });
  expect(await statusOf(a, '/readyz')).toBe(200);
  await at(a)(drainReplica, { params: { name: 'c' } });
  await eventually('everything has moved to A', async () => {
    const [ofA, ofC] = await at(a)(listReplicas, {});
    return ofC!.connected_agents === 0 && ofC!.leases.length === 0 && ofA!.connected_agents === agents.length
      ? true
      : null;
  });
  await at(a)(undrainReplica, { params: { name: 'c' } });
}

function statusOf(replica: Orchestrator, path: string): Promise<number | undefined> {
  const ca = readFileSync(join(replica.dataDir, 'api.crt'), 'utf8');
  return new Promise((resolve, reject) => {
    request(`${replica.url}${path}`, { ca }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

const moduleOf = (name: string, script: object): string =>
  JSON.stringify({ name, supports: [{ platform: 'linux' }], resources: [{ id: name, resource: { script } }] });
