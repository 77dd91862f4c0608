import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '@muster/protocol/client';
import { createEnrolmentToken } from '@muster/protocol/http';
import { muster, root } from '../tools/suite/cli.ts';
import { type Ending, Program } from '../tools/suite/program.ts';
import { newOperator, type Operator, operatorClient, transportTo } from './client.ts';

interface RunOptions {
  flags?: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** A command, such as `unshare`, that executes the command in its last arguments. */
  within?: readonly string[];
}

/** A `muster` process that can be stopped or killed and started again with the same data directory. */
class Restartable {
  readonly dataDir: string;
  readonly #stage: Stage;
  readonly #what: 'orchestrator' | 'agent';
  #options: RunOptions;
  #program: Program | null = null;

  constructor(stage: Stage, what: 'orchestrator' | 'agent', dataDir: string, options: RunOptions) {
    this.#stage = stage;
    this.#what = what;
    this.dataDir = dataDir;
    this.#options = options;
  }

  get program(): Program {
    if (!this.#program) throw new Error(`the ${this.#what} has not been started`);
    return this.#program;
  }

  /** Sets additional environment variables for the next start. */
  set(env: NodeJS.ProcessEnv): void {
    this.#options = { ...this.#options, env: { ...this.#options.env, ...env } };
  }

  protected run(args: readonly string[]): Program {
    const flags = ['--data-dir', this.dataDir, '--log-format', 'json', ...(this.#options.flags ?? [])];
    const { env, within } = this.#options;
    this.#program = this.#stage.run(this.#what, [this.#what, ...flags, ...args], env, within);
    return this.#program;
  }

  /** Kills the process with SIGKILL, as the kernel's out-of-memory killer does. */
  async kill9(): Promise<void> {
    this.program.kill('SIGKILL');
    await this.program.ended;
  }

  async stop(): Promise<Ending> {
    return await this.program.stop();
  }
}

export class Orchestrator extends Restartable {
  readonly operator: Operator;
  /** Client that acts as the first admin. */
  readonly call: Client;
  url = '';
  apiPort = 0;
  agentPort = 0;
  publicKey = '';

  constructor(stage: Stage, dataDir: string, options: RunOptions) {
    super(stage, 'orchestrator', dataDir, options);
    this.operator = newOperator();
    this.call = this.clientFor(this.operator);
  }

  clientFor(operator: Operator): Client {
    const certificate = () => readFileSync(join(this.dataDir, 'api.crt'), 'utf8');
    return operatorClient(() => this.url, transportTo(certificate), operator);
  }

  /** Starts the orchestrator: the first time on free ports, later on the same ports. Resolves when it is ready. */
  async start(): Promise<void> {
    const ports = ['--api-port', String(this.apiPort), '--agent-port', String(this.agentPort)];
    const bootstrap = ['--bootstrap-key', this.operator.publicKey, '--bootstrap-username', 'ada'];
    const ready = await this.run([...ports, ...bootstrap]).event('ready', { timeoutMs: 180_000 });
    this.url = String(ready.api_url);
    this.apiPort = Number(ready.api_port);
    this.agentPort = Number(ready.agent_port);
    this.publicKey = String(ready.public_key);
  }

  /** Creates an enrollment token that approves an agent under this name. If the name is null, the agent waits for approval. */
  async token(name: string | null, tags: Record<string, string> = {}): Promise<string> {
    const body = name === null ? { approve: false, tags } : { approve: true, name, tags };
    return (await this.call(createEnrolmentToken, { body })).token;
  }
}

export class AgentProcess extends Restartable {
  readonly #connect: readonly string[];
  nodeId = '';

  constructor(stage: Stage, dataDir: string, connect: readonly string[], options: RunOptions) {
    super(stage, 'agent', dataDir, options);
    this.#connect = connect;
  }

  /** Starts the agent without waiting until it is connected. */
  launch(): Program {
    return this.run(['connect', ...this.#connect]);
  }

  /** Starts the agent and waits until it is connected. */
  async start(): Promise<void> {
    const connected = await this.launch().event('connected', { timeoutMs: 180_000 });
    this.nodeId = String(connected.node_id);
  }

  /** Waits until the current process has connected `count` times. */
  async connected(count: number): Promise<void> {
    await this.program.event('connected', { count, timeoutMs: 180_000 });
  }
}

/** A test's processes and temporary directory. `end` kills the processes and deletes the directory. */
export class Stage {
  readonly dir = mkdtempSync(join(tmpdir(), 'muster-e2e-'));
  readonly #programs: Program[] = [];

  /** Creates a directory in the temporary directory. */
  folder(name: string): string {
    const path = join(this.dir, name);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return path;
  }

  /** Starts `muster` with an environment that hides the user's own profiles. */
  run(name: string, args: readonly string[], env: NodeJS.ProcessEnv = {}, within: readonly string[] = []): Program {
    const [command = muster, ...words] = [...within, muster, ...args];
    return this.watch(new Program({ name, command, args: words, cwd: root, env: this.environment(env) }));
  }

  /** Registers a program to kill during cleanup. */
  watch(program: Program): Program {
    this.#programs.push(program);
    return program;
  }

  environment(env: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
    const clean = Object.entries(process.env).filter(
      ([name]) => !/^(MUSTER_|npm_|VITEST|NODE_(?!COMPILE_CACHE))/.test(name),
    );
    return {
      ...Object.fromEntries(clean),
      HOME: this.folder('home'),
      XDG_CONFIG_HOME: this.folder('home/config'),
      XDG_CACHE_HOME: this.folder('home/cache'),
      ...env,
    };
  }

  async orchestrator(options: RunOptions = {}): Promise<Orchestrator> {
    const orchestrator = new Orchestrator(this, this.folder(`orchestrator-${this.#programs.length}`), options);
    await orchestrator.start();
    return orchestrator;
  }

  /**
   * Starts an agent that has the orchestrator's key pinned, and approves it under `name`. `token` overrides the enrollment
   * token; null omits it.
   */
  async agent(
    orchestrator: Orchestrator,
    name: string,
    options: RunOptions & { token?: string | null; tags?: Record<string, string> } = {},
  ): Promise<AgentProcess> {
    const { token = await orchestrator.token(name, options.tags) } = options;
    const connect = [`127.0.0.1:${orchestrator.agentPort}`, '--orchestrator-key', orchestrator.publicKey];
    const agent = this.agentAt(name, [...connect, ...(token === null ? [] : ['--token', token])], options);
    await agent.start();
    return agent;
  }

  /** Creates an agent with these arguments for `connect`, without starting it. */
  agentAt(name: string, connect: readonly string[], options: RunOptions = {}): AgentProcess {
    return new AgentProcess(this, this.folder(`agent-${name}`), connect, options);
  }

  /** Returns the last output of every program, to print after a failed test. */
  report(): string {
    return this.#programs
      .map((program) => {
        const state = program.ending ? JSON.stringify(program.ending) : 'runs';
        return [`── ${program.name} (pid ${program.pid}, ${state})`, ...program.lastLines(60)].join('\n');
      })
      .join('\n');
  }

  async end(): Promise<void> {
    for (const program of this.#programs) program.kill('SIGKILL');
    await Promise.all(this.#programs.map((program) => program.ended));
    rmSync(this.dir, { recursive: true, force: true });
  }
}
