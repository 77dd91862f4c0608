import { type Agent, getAgent, listAgents } from '@muster/protocol/http';
import { bundles } from '../../tools/build/bundle.ts';
import { eventually } from '../eventually.ts';
import type { Orchestrator } from '../harness.ts';
import { type Machine, repositoryInside } from './machine.ts';

const unit = 'muster-agent.service';

export interface AgentOptions {
  tags?: Record<string, string>;
  /** Lines in the unit's `[Service]` section. */
  service?: readonly string[];
  flags?: readonly string[];
  /** Whether to approve and name the agent. Default: true. */
  approved?: boolean;
}

/** A real agent that runs as a systemd service on a test host. */
export class HostAgent {
  readonly machine: Machine;
  readonly nodeId: string;
  readonly #orchestrator: Orchestrator;

  private constructor(machine: Machine, orchestrator: Orchestrator, nodeId: string) {
    this.machine = machine;
    this.#orchestrator = orchestrator;
    this.nodeId = nodeId;
  }

  /**
   * Installs the agent on a running machine, approves it under the machine's name, and waits until it is connected.
   * @param address address at which the machine reaches the orchestrator
   */
  static async install(
    machine: Machine,
    orchestrator: Orchestrator,
    address: string,
    options: AgentOptions = {},
  ): Promise<HostAgent> {
    // Builds the bundles, because the machine mounts the repository read-only and `muster agent` would build missing
    // bundles.
    await bundles();
    const { approved = true } = options;
    const token = await orchestrator.token(approved ? machine.name : null, options.tags);
    const connect = `${address}:${orchestrator.agentPort} --orchestrator-key ${orchestrator.publicKey} --token ${token}`;
    const text = [
      '[Unit]\nDescription=Muster agent\nAfter=network.target\n\n[Service]',
      `ExecStart=${repositoryInside}/cli/bin/muster agent --log-format json ${options.flags?.join(' ') ?? ''} connect ${connect}`,
      'Restart=always\nRestartSec=0.1',
      ...(options.service ?? []),
      '\n[Install]\nWantedBy=multi-user.target\n',
    ].join('\n');
    await machine.run(['sh', '-euc', `cat > /etc/systemd/system/${unit}; systemctl enable --now ${unit}`], {
      input: text,
    });
    const nodeId = await eventually(`the agent of ${machine.name} is connected`, async () => {
      const agents = await orchestrator.call(listAgents, {});
      const nameOf = (agent: Agent) => (approved ? agent.name : agent.initial_hostname);
      return agents.find((agent) => agent.connected && nameOf(agent) === machine.name)?.node_id ?? null;
    });
    return new HostAgent(machine, orchestrator, nodeId);
  }

  /** Waits until the agent's link is up. */
  async connected(): Promise<void> {
    await eventually(`the agent of ${this.machine.name} is connected`, async () => {
      const { connected } = await this.#orchestrator.call(getAgent, { params: { node_id: this.nodeId } });
      return connected ? true : null;
    });
  }

  async stop(): Promise<void> {
    await this.machine.exec('systemctl', 'stop', unit);
  }

  async start(): Promise<void> {
    await this.machine.exec('systemctl', 'start', unit);
  }

  /**
   * Kills only the main process of the agent, as the kernel's out-of-memory killer does. systemd restarts the agent.
   */
  async kill9(): Promise<void> {
    await this.machine.exec('systemctl', 'kill', '--kill-whom=main', '--signal=KILL', unit);
  }

  /** Returns the number of automatic restarts since the last `systemctl start`. */
  async restarts(): Promise<number> {
    return Number(await this.machine.exec('systemctl', 'show', '--property=NRestarts', '--value', unit));
  }

  /** Returns the agent's most recent log lines. */
  async log(lines = 60): Promise<string> {
    return (await this.machine.run(['journalctl', '--unit', unit, '--output=cat', '--lines', String(lines)])).stdout;
  }
}
