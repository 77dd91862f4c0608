import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { muster, root } from '../../../tools/suite/cli.ts';
import { Program } from '../../../tools/suite/program.ts';
import { scratchDirectory } from '../run/scratch.ts';
import type { OrchestratorProcess } from '../servers/orchestrator-process.ts';
import { type Usage, usageOf } from '../servers/server-process.ts';

export interface RealAgentOptions {
  /** Text of the configuration file; null for no file. Default: a configuration with terminals turned on. */
  config?: string | null;
  command?: string;
  /** Variables to add to the environment. */
  environment?: Readonly<Record<string, string>>;
}

export class RealAgent {
  readonly nodeId: string;
  readonly #program: Program;

  private constructor(program: Program, nodeId: string) {
    this.#program = program;
    this.nodeId = nodeId;
  }

  /** Enrolls and starts the agent. Resolves when it is connected. */
  static async start(
    orchestrator: OrchestratorProcess,
    name: string,
    {
      config = 'remote_terminal: { enabled: true, shell: /bin/sh }\n',
      command = muster,
      environment,
    }: RealAgentOptions = {},
  ): Promise<RealAgent> {
    const dataDir = scratchDirectory(name);
    const file = join(dataDir, 'agent.yaml');
    if (config !== null) writeFileSync(file, config);
    const { port, orchestratorKey } = orchestrator.address;
    const token = await orchestrator.enrolmentToken(1);
    const own = [
      '--data-dir',
      join(dataDir, 'data'),
      '--log-format',
      'json',
      ...(config === null ? [] : ['--config', file]),
    ];
    const connect = ['connect', `127.0.0.1:${port}`, '--orchestrator-key', orchestratorKey, '--token', token];
    const env = { ...process.env, ...environment };
    const program = new Program({ name, command, args: ['agent', ...own, ...connect], cwd: root, env });
    const { node_id } = await program.event('connected');
    return new RealAgent(program, String(node_id));
  }

  get pid(): number {
    return this.#program.pid;
  }

  get usage(): Usage {
    return usageOf(this.#program.pid);
  }

  async stop(): Promise<void> {
    await this.#program.stop();
  }
}
