import { type Orchestrator, Stage } from '../harness.ts';
import { type AgentOptions, HostAgent } from './agent.ts';
import { AptRepository } from './apt-repository.ts';
import { type MachineOptions, TestHosts } from './test-hosts.ts';

interface FleetOptions {
  machines: Readonly<Record<string, MachineOptions & { agent?: AgentOptions }>>;
  /** Additional environment variables for the orchestrator. */
  env?: NodeJS.ProcessEnv;
  /** Whether the machines use the test repository as their apt source. */
  packages?: boolean;
}

/** An orchestrator, and real machines with one approved and connected agent each. */
export class Fleet {
  readonly stage = new Stage();
  readonly hosts: TestHosts;
  readonly agents = new Map<string, HostAgent>();
  #orchestrator: Orchestrator | null = null;
  #repository: AptRepository | null = null;

  private constructor(hosts: TestHosts) {
    this.hosts = hosts;
  }

  static async open(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(await TestHosts.open());
    try {
      await fleet.#start(options);
    } catch (error) {
      console.error(await fleet.report());
      await fleet.end();
      throw error;
    }
    return fleet;
  }

  async #start({ machines, env = {}, packages = false }: FleetOptions): Promise<void> {
    const orchestrator = this.stage.orchestrator({ env });
    const repository = packages ? AptRepository.open(this.hosts) : null;
    const started = Object.entries(machines).map(async ([name, { agent = {}, ...machineOptions }]) => {
      const machine = await this.hosts.start(name, machineOptions);
      await (await repository)?.use(machine);
      const { address } = this.hosts.bridge;
      this.agents.set(name, await HostAgent.install(machine, await orchestrator, address, agent));
    });
    // Waits for all programs, so that `end` also stops those that start after the first failure.
    const ends = await Promise.allSettled([orchestrator, repository, ...started]);
    if (ends[0].status === 'fulfilled') this.#orchestrator = ends[0].value;
    if (ends[1].status === 'fulfilled') this.#repository = ends[1].value;
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  }

  get orchestrator(): Orchestrator {
    if (this.#orchestrator === null) throw new Error('the orchestrator has not started');
    return this.#orchestrator;
  }

  get repository(): AptRepository {
    if (this.#repository === null) throw new Error('the fleet was opened without packages');
    return this.#repository;
  }

  agent(name: string): HostAgent {
    const agent = this.agents.get(name);
    if (agent === undefined) throw new Error(`the fleet has no machine "${name}"`);
    return agent;
  }

  async end(): Promise<void> {
    await this.#repository?.end();
    await this.hosts.end();
    await this.stage.end();
  }

  /** Returns the last output of all programs, for printing after a failed test. */
  async report(): Promise<string> {
    const logs = [...this.agents.values()].map(async (agent) => {
      const log = await agent.log().catch((error: Error) => error.message);
      return `── agent of ${agent.machine.name}\n${log}`;
    });
    return [this.stage.report(), this.hosts.report(), ...(await Promise.all(logs))].join('\n');
  }
}
