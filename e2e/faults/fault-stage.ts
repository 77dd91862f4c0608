import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lowPort } from '../../lib/test/low-port.ts';
import { type PostgresServer, startPostgres } from '../../orchestrator/test/databases/postgres-server.ts';
import { NatsServer } from '../../orchestrator/test/nats/nats-server.ts';
import { CuttingProxy } from '../cutting-proxy.ts';
import { musterOrchestrator } from '../replica-set.ts';
import { Orchestrator, type Stage } from '../stage.ts';
import { recordCommitTimes, startDatabaseLog } from './database-log.ts';
import { type Edge, type PlannedFault, subjectOf } from './fault-plan.ts';
import { balancerAddress, ProxyBalancer } from './proxy-balancer.ts';
import type { Recorder } from './recorder.ts';
import { ReplicaKeeper } from './replica-keeper.ts';

interface Edges {
  readonly agents: CuttingProxy;
  readonly api: CuttingProxy;
  readonly postgres: CuttingProxy;
  readonly nats: CuttingProxy;
}

/** Replicas, a balancer, PostgreSQL, and NATS, with an edge for each connection between them. */
export class FaultStage {
  readonly replicas: ReplicaKeeper[] = [];
  readonly #edges: Edges[] = [];
  readonly #postgres: PostgresServer;
  readonly #nats = new NatsServer();
  #balancer: ProxyBalancer | null = null;
  /** Ports of the balancer. */
  agentPort = 0;
  apiPort = 0;
  databaseUrl = '';

  private constructor(postgres: PostgresServer) {
    this.#postgres = postgres;
  }

  /** Starts all programs. @throws PostgresMissing */
  static async start(stage: Stage, count: number): Promise<FaultStage> {
    const started = new FaultStage(await startPostgres());
    try {
      await started.#start(stage, count);
      return started;
    } catch (error) {
      await started.end();
      throw error;
    }
  }

  async #start(stage: Stage, count: number): Promise<void> {
    await recordCommitTimes(this.#postgres.url);
    await this.#postgres.kill();
    await this.#postgres.start();
    this.#nats.port = await lowPort();
    await this.#nats.start();
    this.databaseUrl = await this.#postgres.createDatabase();
    const config = join(stage.dir, 'replicas.yaml');
    writeFileSync(config, configuration);
    for (let index = 0; index < count; index++) await this.#addReplica(stage, config, index);
    const [first, ...others] = this.replicas.map(({ orchestrator }) => orchestrator);
    await first!.start();
    await startDatabaseLog(this.databaseUrl);
    const keys = join(stage.dir, 'keys.age');
    musterOrchestrator('share', first!.dataDir, keys);
    for (const { dataDir } of others) musterOrchestrator('join', dataDir, keys);
    await Promise.all(others.map((other) => other.start()));
    for (const replica of this.replicas) replica.watch();
    const targets = await Promise.all(
      this.#edges.map(async ({ agents, api }) => ({ agents, api, checkPort: await api.listen() })),
    );
    this.#balancer = new ProxyBalancer(targets);
    this.agentPort = await this.#balancer.listen('agents');
    this.apiPort = await this.#balancer.listen('api');
  }

  async #addReplica(stage: Stage, config: string, index: number): Promise<void> {
    const database = new URL(this.databaseUrl);
    const postgresPort = Number(database.port);
    const edges: Edges = {
      agents: new CuttingProxy(() => this.replicas[index]!.orchestrator.agentPort, balancerAddress),
      api: new CuttingProxy(() => this.replicas[index]!.orchestrator.apiPort, balancerAddress),
      postgres: new CuttingProxy(() => postgresPort),
      nats: new CuttingProxy(() => this.#nats.port),
    };
    this.#edges.push(edges);
    database.port = String(await edges.postgres.listen());
    const name = String.fromCharCode('a'.charCodeAt(0) + index);
    const orchestrator = new Orchestrator(stage, stage.folder(`replica-${name}`), {
      flags: ['--config', config],
      env: {
        MUSTER_DATABASE_URL: database.href,
        MUSTER_REPLICA_NAME: name,
        MUSTER_NATS_URL: `nats://127.0.0.1:${await edges.nats.listen()}`,
      },
    });
    // Unlike ports that the system chooses, these ports are still free when the replica restarts.
    orchestrator.apiPort = await lowPort();
    orchestrator.agentPort = await lowPort();
    this.replicas.push(new ReplicaKeeper(orchestrator));
  }

  /** Records and injects a fault, and repairs it after its duration. */
  async inject(fault: PlannedFault, recorder: Recorder): Promise<void> {
    const at = recorder.now;
    recorder.record({ type: 'fault', at, until: at + fault.lasts, kind: fault.kind, subject: subjectOf(fault) });
    const wait = () => sleep(fault.lasts);
    switch (fault.kind) {
      case 'kill-replica': {
        const replica = this.replicas[fault.replica]!;
        await replica.kill();
        await wait();
        replica.restart();
        return;
      }
      case 'stop-replica': {
        const replica = this.replicas[fault.replica]!;
        replica.suspend();
        await wait();
        replica.resume();
        return;
      }
      case 'shift-clock': {
        const replica = this.replicas[fault.replica]!;
        replica.shiftClock(fault.byMs);
        await wait();
        replica.shiftClock(0);
        return;
      }
      case 'kill-nats':
        await this.#nats.kill();
        await wait();
        await this.#nats.start();
        return;
      case 'kill-postgres':
        await this.#postgres.kill();
        await wait();
        await this.#postgres.start();
        return;
      case 'cut': {
        const edge = this.#edge(fault.edge);
        edge.cut(fault.how);
        await wait();
        edge.restore();
        return;
      }
    }
  }

  #edge({ to, replica }: Edge): CuttingProxy {
    return this.#edges[replica]![to];
  }

  async end(): Promise<void> {
    this.#balancer?.end();
    for (const edges of this.#edges) for (const edge of Object.values(edges)) edge.end();
    await Promise.all(this.replicas.map((replica) => replica.end().catch(() => {})));
    await this.#nats.stop();
    await this.#postgres.stop();
  }
}

const configuration = `proxy_protocol: { networks: [${balancerAddress}] }
session_token_expiry_secs: 86400
rates: { sign_in_per_minute: 100000, sign_in_burst: 100000, session_per_second: 100000 }
`;
