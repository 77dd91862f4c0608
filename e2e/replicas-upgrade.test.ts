import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import {
  applyAssignment,
  createAssignment,
  getRun,
  getStatus,
  listAgents,
  listReplicas,
  putTag,
  uploadModule,
  verifyAudit,
} from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { operatorClient } from './client.ts';
import { eventually } from './eventually.ts';
import { extractFormerRelease, formerReleaseMissing, formerSchema } from './former-release.ts';
import { type AgentProcess, Orchestrator, type Stage, test } from './harness.ts';
import { musterOrchestrator, transportOf } from './replica-set.ts';
import { TcpBalancer } from './tcp-balancer.ts';

describe('replicas of two releases on one PostgreSQL database', () => {
  let server: PostgresServer | undefined;
  let lacking: string | null = null;
  beforeAll(async () => {
    lacking = formerReleaseMissing();
    if (lacking !== null) return;
    try {
      server = await startPostgres();
    } catch (error) {
      if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
      lacking = error.message;
    }
  });
  beforeEach(({ skip }) => {
    if (lacking !== null) skip(lacking);
  });
  afterAll(() => server?.stop());

  test('serve one fleet while they are upgraded one after the other', async ({ stage, onTestFinished }) => {
    const url = await server!.createDatabase();
    const schema = async () =>
      Math.max(...(await server!.dump(url)).get('schema_version')!.split('\n').map(parseFloat));
    const { within } = extractFormerRelease(stage.folder('former'));
    const [a, b] = await startFormer(stage, url, within);
    expect(await schema()).toBe(formerSchema);
    const balancer = new TcpBalancer([a.agentPort, b.agentPort]);
    onTestFinished(() => balancer.end());
    const connect = [`127.0.0.1:${await balancer.listen()}`, '--orchestrator-key', a.publicKey];
    const agents: AgentProcess[] = [];
    for (const name of ['web-0', 'web-1']) {
      const token = await a.token(name, { role: 'web' });
      const agent = stage.agentAt(name, [...connect, '--token', token], { within });
      await agent.start();
      agents.push(agent);
    }
    const at = (replica: Orchestrator) => operatorClient(() => replica.url, transportOf(replica), a.operator);
    const finish = await startSlowRun(stage, at(b), agents);

    await a.stop();
    const newA = upgraded(stage, a, url);
    await newA.start();
    expect(await schema()).toBe(formerSchema + 1);
    await expectBothServe({ newer: newA, older: b, agents, at });
    // A replica of the former release also starts on the migrated database.
    await b.kill9();
    await b.start();
    await expectBothServe({ newer: newA, older: b, agents, at });
    await finish(at(newA));

    await b.stop();
    const newB = upgraded(stage, b, url);
    await newB.start();
    for (const replica of [newA, newB])
      await eventually('both replicas are ready and alike', async () => {
        const { reasons } = await at(replica)(getStatus, {});
        const listed = await at(replica)(listReplicas, {});
        return reasons.length === 0 && listed.length === 2 && listed.every(({ ready }) => ready) ? true : null;
      });
    await expectConnected(at(newB));
    expect(await at(newB)(verifyAudit, {})).toMatchObject({ ok: true, fault: null });
  });
});

/** Starts two replicas of the former release. */
async function startFormer(
  stage: Stage,
  url: string,
  within: readonly string[],
): Promise<readonly [Orchestrator, Orchestrator]> {
  const create = (name: string) =>
    new Orchestrator(stage, stage.folder(name), {
      within,
      env: { MUSTER_DATABASE_URL: url, MUSTER_REPLICA_NAME: name },
    });
  const [a, b] = [create('a'), create('b')];
  await a.start();
  const keys = join(stage.dir, 'keys.age');
  musterOrchestrator('share', a.dataDir, keys);
  musterOrchestrator('join', b.dataDir, keys);
  await b.start();
  return [a, b];
}

/** Returns this release with the data directory, the name, and the ports of a replica that has stopped. */
function upgraded(stage: Stage, former: Orchestrator, url: string): Orchestrator {
  const name = former.dataDir.split('/').at(-1)!;
  const env = { MUSTER_DATABASE_URL: url, MUSTER_REPLICA_NAME: name };
  return Object.assign(new Orchestrator(stage, former.dataDir, { env }), {
    apiPort: former.apiPort,
    agentPort: former.agentPort,
  });
}

/**
 * Starts a run that waits on both agents.
 * @returns a function that ends the run, and expects that it succeeded and that each agent executed it once
 */
async function startSlowRun(
  stage: Stage,
  call: Client,
  agents: readonly AgentProcess[],
): Promise<(call: Client) => Promise<void>> {
  const [log, gate] = [join(stage.dir, 'run'), join(stage.dir, 'gate')];
  const apply = `echo ran >> '${log}'; until [ -e '${gate}' ]; do sleep 0.1; done`;
  await call(uploadModule, { body: { name: 'slow', content: moduleOf('slow', apply) } });
  await call(createAssignment, { body: { name: 'webs', modules: ['slow'], selector: 'role=web' } });
  const body = { offline: 'queue' as const };
  const { run_id } = await call(applyAssignment, { params: { name: 'webs' }, body, respondAsync: true });
  const lines = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : []);
  await eventually('all agents execute the run', async () => (lines().length === agents.length ? true : null));
  return async (later) => {
    writeFileSync(gate, '');
    const run = await eventually('the run has ended', async () => {
      const run = await later(getRun, { params: { run_id } });
      return run.finished_at === null ? null : run;
    });
    expect(run).toMatchObject({ status: 'succeeded', results: agents.map(() => ({ status: 'succeeded' })) });
    expect(lines()).toHaveLength(agents.length);
  };
}

/** Expects each replica to serve requests and agents, and to show what the other one changes. */
async function expectBothServe(parts: {
  newer: Orchestrator;
  older: Orchestrator;
  agents: readonly AgentProcess[];
  at: (replica: Orchestrator) => Client;
}): Promise<void> {
  const { newer, older, agents, at } = parts;
  // The former release may not list replicas.
  expect(await at(newer)(listReplicas, {})).toMatchObject([{ name: 'a' }, { name: 'b' }]);
  for (const [replica, other] of [
    [newer, older],
    [older, newer],
  ] as const) {
    expect(await readyStatus(replica)).toBe(200);
    await expectConnected(at(replica));
    const value = `${Math.random()}`;
    for (const { nodeId: node_id } of agents) {
      await at(replica)(putTag, { params: { node_id, key: 'site' }, body: { value } });
      const listed = await at(other)(listAgents, { query: { status: 'approved' } });
      expect(listed.find((agent) => agent.node_id === node_id)?.tags).toMatchObject({ site: value });
    }
  }
}

const expectConnected = (call: Client) =>
  eventually('all agents are connected', async () =>
    (await call(listAgents, { query: { status: 'approved' } })).filter(({ connected }) => connected).length === 2
      ? true
      : null,
  );

const readyStatus = (replica: Orchestrator): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const ca = readFileSync(join(replica.dataDir, 'api.crt'), 'utf8');
    request(`${replica.url}/readyz`, { ca }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on('error', reject)
      .end();
  });

const moduleOf = (name: string, apply: string): string =>
  JSON.stringify({
    name,
    supports: [{ platform: 'linux' }],
    resources: [{ id: name, resource: { script: { program: 'sh', manages: `${name}-file`, apply } } }],
  });
