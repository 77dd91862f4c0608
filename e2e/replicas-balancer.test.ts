import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import {
  type AnswerOf,
  getHealth,
  type getStatus,
  listAgents,
  type Replica,
  uploadModule,
} from '@muster/protocol/http';
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest';
import { PostgresMissing, type PostgresServer, startPostgres } from '../orchestrator/test/databases/postgres-server.ts';
import { NatsServer, natsMissing } from '../orchestrator/test/nats/nats-server.ts';
import { runMuster } from '../tools/suite/cli.ts';
import { Program } from '../tools/suite/program.ts';
import { operatorClient } from './client.ts';
import { documented } from './documented.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { type AgentProcess, Orchestrator, type Stage, test } from './harness.ts';
import { operatorEnvironment } from './person.ts';
import { musterOrchestrator, transportOf } from './replica-set.ts';
import { missing } from './requirements.ts';

const page = 'docs/replicas.md';

/** An address from which HAProxy connects, because clients on this machine have 127.0.0.1. */
const balancerAddress = '127.0.0.2';

describe('replicas behind HAProxy, configured as documented', () => {
  let server: PostgresServer | undefined;
  let lacking: string | null = null;
  beforeAll(async () => {
    lacking = natsMissing() ?? missing('haproxy');
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

  test('serve agents and the CLI while one of them is killed, restarted, drained, and undrained', async ({
    stage,
    onTestFinished,
  }) => {
    const nats = new NatsServer(
      documented(page, { language: 'nats' }, { '/etc/nats/nats.example': 'FOLDER/localhost' }),
    );
    onTestFinished(() => nats.stop());
    createCertificate(nats.folder);
    await nats.start();
    const replicas = await startReplicas(stage, { url: await server!.createDatabase(), nats });
    const [first, second] = replicas as [Orchestrator, Orchestrator, Orchestrator];
    const ports = await startHaproxy(stage, replicas);
    const env = stage.environment(operatorEnvironment(stage, first, ports.api));
    const muster = (...args: string[]) => runMuster(args, env);
    const expectReplicas = (what: string, isMet: (listed: Replica[]) => boolean) =>
      eventually(what, async () => {
        const listed = (await muster('replicas', 'list')) as Replica[];
        return isMet(listed) ? listed : null;
      });
    await expectReplicas('three replicas are ready', areReady(3));
    await eventually('the replicas hear each other through NATS', async () =>
      ((await muster('status')) as AnswerOf<typeof getStatus>).status === 'ok' ? true : null,
    );
    for (const replica of replicas) {
      const call = operatorClient(() => replica.url, transportOf(replica), first.operator);
      expect((await call(getHealth, {})).bus).toMatchObject({ connected: true });
    }

    const agents = await startAgents(stage, first, ports.agents);
    const call = operatorClient(() => `https://127.0.0.1:${ports.api}`, transportOf(first), first.operator);
    await call(uploadModule, { body: { name: 'once', content: module } });
    await expectConnected(call);
    const listed = await expectReplicas('agents are spread', (all) => all.every((one) => one.connected_agents > 0));
    expect(listed.map(({ name, connected_agents }) => [name, connected_agents])).toEqual([
      ['muster-1', 1],
      ['muster-2', 1],
      ['muster-3', 1],
    ]);
    expectClientAddress(replicas, agents);
    await expectRun(muster, agents);

    await second.kill9();
    await expectReplicas('the killed replica is closed', areReady(2));
    await expectConnected(call);
    await expectRun(muster, agents);
    await second.start();
    await expectReplicas('three replicas are ready again', areReady(3));

    expect(await muster('replicas', 'drain', 'muster-1')).toMatchObject({ connected_agents: 0, leases: [] });
    await expectConnected(call);
    await expectAnsweredBy(muster, (names) => !names.includes('muster-1'));
    await expectRun(muster, agents);
    expect(await muster('replicas', 'undrain', 'muster-1')).toMatchObject({ ready: true, draining: false });
    await expectAnsweredBy(muster, (names) => names.includes('muster-1'));
    await expectReplicas('three replicas are ready after all', areReady(3));
    await expectRun(muster, agents);
  });
});

const module = JSON.stringify({
  name: 'once',
  supports: [{ platform: 'linux' }],
  resources: [{ id: 'once', resource: { script: { program: 'sh', manages: 'a-file', apply: 'echo ran' } } }],
});

const areReady = (count: number) => (listed: Replica[]) =>
  listed.length === count && listed.every(({ ready, draining }) => ready && !draining);

/** Executes the commands on the page that create the certificates of the servers. */
function createCertificate(folder: string): void {
  const commands = documented(page, { language: 'sh', content: 'openssl' }, { 'nats.example': 'localhost' });
  execFileSync('sh', ['-ec', commands], { cwd: folder, stdio: 'pipe' });
}

/** Starts three replicas with the configuration on the page. */
async function startReplicas(
  stage: Stage,
  { url, nats }: { url: string; nats: NatsServer },
): Promise<readonly Orchestrator[]> {
  const at = (name: string) => join(stage.folder('etc'), name);
  writeFileSync(at('database-url'), `${url}\n`, { mode: 0o600 });
  writeFileSync(at('nats-credentials'), 'muster:CHANGE_ME\n', { mode: 0o600 });
  const create = (name: string) => {
    const config = documented(
      page,
      { language: 'yaml', content: 'replica:' },
      {
        'muster-1': name,
        '/etc/muster/database-url': at('database-url'),
        'muster.example': '127.0.0.1',
        '192.0.2.2': balancerAddress,
        'nats.example:4222': `localhost:${nats.port}`,
        '/etc/muster/nats-credentials': at('nats-credentials'),
        '/etc/muster/ca.crt': join(nats.folder, 'ca.crt'),
      },
    );
    writeFileSync(at(`${name}.yml`), config, { mode: 0o600 });
    return new Orchestrator(stage, stage.folder(name), { flags: ['--config', at(`${name}.yml`)] });
  };
  const [first, ...others] = ['muster-1', 'muster-2', 'muster-3'].map(create) as [Orchestrator, ...Orchestrator[]];
  await first.start();
  const keys = join(stage.dir, 'keys.age');
  musterOrchestrator('share', first.dataDir, keys);
  for (const { dataDir } of others) musterOrchestrator('join', dataDir, keys);
  await Promise.all(others.map((other) => other.start()));
  // `muster` trusts one certificate for the address of the balancer.
  const certificates = [first, ...others].map(({ dataDir }) => readFileSync(join(dataDir, 'api.crt'), 'utf8'));
  expect(new Set(certificates).size).toBe(1);
  return [first, ...others];
}

/** Starts HAProxy with the configuration on the page. @returns its ports */
async function startHaproxy(stage: Stage, replicas: readonly Orchestrator[]): Promise<{ api: number; agents: number }> {
  const [api, agents] = [await freePort(), await freePort()];
  const servers = replicas.flatMap(({ apiPort, agentPort }, index) => [
    [`192.0.2.1${index + 1}:4747 port 4748`, `127.0.0.1:${agentPort} port ${apiPort}`],
    [`192.0.2.1${index + 1}:4748`, `127.0.0.1:${apiPort}`],
  ]);
  const config = join(stage.folder('etc'), 'haproxy.cfg');
  const text = documented(
    page,
    { language: 'haproxy' },
    {
      ...Object.fromEntries(servers),
      'bind :4748': `bind 127.0.0.1:${api}`,
      'bind :4747': `bind 127.0.0.1:${agents}`,
      'default-server': `default-server source ${balancerAddress}`,
    },
  );
  writeFileSync(config, text);
  stage.watch(new Program({ name: 'haproxy', command: '/usr/sbin/haproxy', args: ['-db', '-f', config] }));
  return { api, agents };
}

/** Starts three agents that connect through HAProxy, one after the other, so that each replica gets one. */
async function startAgents(stage: Stage, orchestrator: Orchestrator, port: number): Promise<AgentProcess[]> {
  const agents: AgentProcess[] = [];
  for (const name of ['web-1', 'web-2', 'web-3']) {
    const connect = [`127.0.0.1:${port}`, '--orchestrator-key', orchestrator.publicKey];
    const agent = stage.agentAt(name, [...connect, '--token', await orchestrator.token(name)]);
    await agent.start();
    agents.push(agent);
  }
  return agents;
}

/** Expects replicas to log the address of the agents, not that of HAProxy. */
function expectClientAddress(replicas: readonly Orchestrator[], agents: readonly AgentProcess[]): void {
  const lines = replicas
    .flatMap(({ program }) => program.lastLines(10_000))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  for (const { nodeId } of agents) {
    const addresses = lines.filter((line) => line.node_id === nodeId && 'remote_ip' in line);
    expect(new Set(addresses.map(({ remote_ip }) => remote_ip))).toEqual(new Set(['127.0.0.1']));
  }
}

const expectConnected = (call: Client) =>
  eventually('all agents are connected', async () =>
    (await call(listAgents, { query: { status: 'approved' } })).filter(({ connected }) => connected).length === 3
      ? true
      : null,
  );

type Muster = (...args: string[]) => Promise<unknown>;

/** Expects an apply through HAProxy to succeed on all agents. */
async function expectRun(muster: Muster, agents: readonly AgentProcess[]): Promise<void> {
  const run = (await muster('apply', 'web-1', 'web-2', 'web-3', '-m', 'once', '--yes')) as {
    results: { status: string }[];
  };
  expect(run.results.map(({ status }) => status)).toEqual(agents.map(() => 'succeeded'));
}

/** Waits until the replicas that answer six requests in a row fulfill the condition. */
const expectAnsweredBy = (muster: Muster, isMet: (names: string[]) => boolean) =>
  eventually('HAProxy selects the right replicas', async () => {
    const names: string[] = [];
    for (let count = 0; count < 6; count++)
      names.push(((await muster('replicas', 'list')) as Replica[]).find(({ this_replica }) => this_replica)!.name);
    return isMet(names) ? true : null;
  });
