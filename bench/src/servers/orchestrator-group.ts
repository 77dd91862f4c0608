import { getStatus } from '@muster/protocol/http';
import {
  PostgresMissing,
  type PostgresServer,
  startPostgres,
} from '../../../orchestrator/test/databases/postgres-server.ts';
import { NatsServer, natsMissing } from '../../../orchestrator/test/nats/nats-server.ts';
import { endingWithStarter } from '../../../tools/suite/program.ts';
import type { SimulatedTarget } from '../load/simulated-agent.ts';
import type { Counters, Reading } from '../run/unit-cost.ts';
import { OrchestratorProcess } from './orchestrator-process.ts';
import { type PostgresCounters, PostgresStatistics } from './postgres-counters.ts';
import { usageOf } from './server-process.ts';

/** Work of a group's programs since their start. */
export type GroupCounters = Counters<
  keyof PostgresCounters | 'cpuSecs' | 'natsCpuSecs' | 'published' | 'delivered' | 'deliveredBytes'
>;
export type GroupReading = Reading<keyof GroupCounters>;

/** A program that a group needs cannot run on this machine. */
export class ProgramMissing extends Error {}

/** The servers use V8's default young generation, as the shipped programs do. */
const flags: readonly string[] = [];
/** Milliseconds between two looks at whether the replicas hear each other, and their maximum number. */
const lookMs = 200;
const maxLooks = 300;

/**
 * A group is one orchestrator on PostgreSQL, or several replicas on PostgreSQL and NATS. Each group has its own servers, so that
 * their statistics cover one group.
 */
export class OrchestratorGroup {
  readonly members: readonly OrchestratorProcess[];
  readonly #postgres: PostgresServer;
  readonly #statistics: PostgresStatistics;
  readonly #nats: NatsServer | null;

  private constructor(
    members: readonly OrchestratorProcess[],
    postgres: PostgresServer,
    statistics: PostgresStatistics,
    nats: NatsServer | null,
  ) {
    this.members = members;
    this.#postgres = postgres;
    this.#statistics = statistics;
    this.#nats = nats;
  }

  /**
   * Starts a group. Resolves when its members are ready and hear each other.
   * @param count number of orchestrators; with 1, it is not a replica, and there is no NATS
   * @throws ProgramMissing
   */
  static async start(count: number): Promise<OrchestratorGroup> {
    const nats = count === 1 ? null : await startNats();
    const postgres = await startServer();
    const databaseUrl = await postgres.createDatabase();
    const optionsOf = (index: number) => ({
      ...{ databaseUrl, flags },
      environment: nats === null ? {} : { MUSTER_REPLICA_NAME: `replica-${index}`, MUSTER_NATS_URL: nats.url },
    });
    const first = await OrchestratorProcess.start(optionsOf(1));
    const others = Array.from({ length: count - 1 }, (_, index) => first.startReplica(optionsOf(index + 2)));
    const statistics = await PostgresStatistics.open(databaseUrl);
    const group = new OrchestratorGroup([first, ...(await Promise.all(others))], postgres, statistics, nats);
    await group.#hearEachOther();
    return group;
  }

  async #hearEachOther(): Promise<void> {
    for (const { call } of this.members)
      for (let look = 0; ; look++) {
        const { reasons } = await call(getStatus, {});
        if (reasons.length === 0) break;
        if (look === maxLooks) throw new Error(`an orchestrator is still degraded: ${reasons.join(', ')}`);
        await new Promise((resolve) => setTimeout(resolve, lookMs));
      }
  }

  /** Returns the members' addresses for agents that enroll with the token. */
  targets(token: string): SimulatedTarget[] {
    return this.members.map(({ address }) => ({ ...address, token }));
  }

  async read(): Promise<GroupReading> {
    const { connections: _, ...database } = await this.#statistics.read();
    const { in_msgs: published, out_msgs: delivered, out_bytes: deliveredBytes } = await this.#natsStatistics();
    const cpuSecs = this.members.reduce((sum, { usage }) => sum + usage.cpuSecs, 0);
    const natsCpuSecs = this.#nats === null ? 0 : usageOf(this.#nats.pid).cpuSecs;
    return {
      at: performance.now() / 1000,
      counters: { ...database, cpuSecs, natsCpuSecs, published, delivered, deliveredBytes },
    };
  }

  async #natsStatistics(): Promise<{ in_msgs: number; out_msgs: number; out_bytes: number }> {
    if (this.#nats === null) return { in_msgs: 0, out_msgs: 0, out_bytes: 0 };
    const answer = await fetch(`${this.#nats.monitoringUrl}/varz`);
    return (await answer.json()) as { in_msgs: number; out_msgs: number; out_bytes: number };
  }

  /** Returns the number of connections to PostgreSQL, without the one that reads the statistics. */
  async databaseConnections(): Promise<number> {
    return (await this.#statistics.read()).connections - 1;
  }

  /** Returns the sum of a Prometheus metric over the members. @param token sign-in session token */
  async metric(name: string, token: string): Promise<number> {
    const values = await Promise.all(this.members.map((member) => member.metric(name, token)));
    return values.reduce((sum, value) => sum + value, 0);
  }

  /** Number of API connections that were reset before a response. */
  get resets(): number {
    return this.members.reduce((sum, { resets }) => sum + resets, 0);
  }

  async stop(): Promise<void> {
    await this.#statistics.close();
    await Promise.all(this.members.map((member) => member.stop()));
    await this.#nats?.stop();
    await this.#postgres.stop();
  }
}

async function startNats(): Promise<NatsServer> {
  const missing = natsMissing();
  if (missing !== null) throw new ProgramMissing(missing);
  const nats = new NatsServer('http: "127.0.0.1:-1"', endingWithStarter);
  await nats.start();
  return nats;
}

async function startServer(): Promise<PostgresServer> {
  try {
    return await startPostgres();
  } catch (error) {
    if (!(error instanceof PostgresMissing) || process.env.CI === 'true') throw error;
    throw new ProgramMissing(error.message);
  }
}
