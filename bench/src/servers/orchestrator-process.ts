import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync, createWriteStream, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Client, Transport } from '@muster/protocol/client';
import { createEnrolmentToken } from '@muster/protocol/http';
import { newOperator, type Operator, operatorClient, signIn, transportTo } from '../../../e2e/client.ts';
import { bundles } from '../../../tools/build/bundle.ts';
import { endingWithStarter } from '../../../tools/suite/program.ts';
import { printProgress } from '../run/progress.ts';
import { scratchDirectory } from '../run/scratch.ts';
import { retryingResets } from './reset-retries.ts';
import { serverFlags, type Usage, usageOf } from './server-process.ts';

/** Flags that make the process collect garbage on SIGUSR2, so that a bench can measure live memory. */
const collecting = ['--import', 'data:text/javascript,process.on("SIGUSR2",()=>{gc();gc();gc()})'];
const collectMs = 500;
/** Environment variables that the launcher sets for the orchestrator. */
const launcherVariables = { MALLOC_ARENA_MAX: '1' };
/** Files in the data directory that are equal on all replicas of a fleet. */
const sharedKeys = ['identity.key', 'api.key', 'api.crt', 'secrets.keys'];

export interface OrchestratorOptions {
  /** Called with the data directory before the orchestrator starts. */
  prepare?: (dataDir: string) => Promise<void>;
  /** URL of a PostgreSQL database; null for SQLite in the data directory. */
  databaseUrl?: string | null;
  /** Node.js flags. */
  flags?: readonly string[];
  /** Variables to add to the environment. */
  environment?: Readonly<Record<string, string>>;
  /** The first admin; default: a new one. */
  operator?: Operator;
}

/** A real orchestrator on free ports, with its own data directory. */
export class OrchestratorProcess {
  /** Client that acts as the first admin. */
  readonly call: Client;
  private readonly transport: Transport;
  /** Number of API connections that were reset before a response. The requests were retried. */
  resets = 0;
  readonly dataDir: string;
  private readonly operator: Operator;
  private apiUrl = '';
  /** Port and key for agents. */
  address = { port: 0, orchestratorKey: '' };
  private child: ChildProcess;
  private readonly spawn: (apiPort: string, agentPort: string) => ChildProcess;

  private constructor(
    nodeArgs: readonly string[],
    dataDir: string,
    operator: Operator,
    environment: Readonly<Record<string, string>>,
  ) {
    this.transport = retryingResets(
      transportTo(() => this.certificate),
      (path) => {
        this.resets++;
        printProgress(`${path}: connection reset; retrying`);
      },
    );
    this.call = operatorClient(() => this.apiUrl, this.transport, operator);
    this.dataDir = dataDir;
    this.operator = operator;
    const flags = ['--bootstrap-key', operator.publicKey, '--bootstrap-username', 'bench'];
    this.spawn = (apiPort, agentPort) => {
      const own = [
        '--data-dir',
        dataDir,
        '--api-port',
        apiPort,
        '--agent-host',
        '127.0.0.1',
        '--agent-port',
        agentPort,
      ];
      const args = [...nodeArgs, ...own, '--log-format', 'json', ...flags];
      return spawn(...endingWithStarter(process.execPath, args), {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, ...launcherVariables, ...environment },
      });
    };
    this.child = this.spawn('0', '0');
  }

  /** Starts the orchestrator. Resolves when it is ready. */
  static async start({
    prepare,
    databaseUrl = null,
    flags = serverFlags,
    environment = {},
    operator = newOperator(),
  }: OrchestratorOptions = {}): Promise<OrchestratorProcess> {
    const dataDir = scratchDirectory('orchestrator');
    const program = join(await bundles(), 'orchestrator.cjs');
    await prepare?.(dataDir);
    const orchestrator = new OrchestratorProcess([...flags, ...collecting, program], dataDir, operator, {
      ...(databaseUrl === null ? {} : { MUSTER_DATABASE_URL: databaseUrl }),
      ...environment,
    });
    await orchestrator.ready();
    return orchestrator;
  }

  /** Starts another replica with the keys and the operator of this one. The options must name the same database. */
  startReplica(options: OrchestratorOptions): Promise<OrchestratorProcess> {
    return OrchestratorProcess.start({
      ...options,
      operator: this.operator,
      prepare: async (dataDir) => {
        for (const file of sharedKeys) copyFileSync(join(this.dataDir, file), join(dataDir, file));
      },
    });
  }

  /** Creates an enrollment token for `uses` agents, which approves them and tags them with `bench=yes`. */
  async enrolmentToken(uses: number): Promise<string> {
    return (await this.call(createEnrolmentToken, { body: { uses, tags: { bench: 'yes' } } })).token;
  }

  /** Opens `count` sign-in sessions, each with its own rate limit. @returns their tokens */
  async sessions(count: number): Promise<string[]> {
    const tokens: string[] = [];
    for (let i = 0; i < count; i++) tokens.push(await signIn(this.call, this.operator));
    return tokens;
  }

  /** Returns the value of one of the orchestrator's Prometheus metrics. @param token sign-in session token */
  async metric(name: string, token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` };
    const request = { method: 'GET', url: `${this.apiUrl}/metrics`, headers, body: undefined, signal: undefined };
    const answer = await this.transport(request);
    return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await answer.text())![1]);
  }

  /** The API's certificate in PEM. */
  get certificate(): string {
    return readFileSync(join(this.dataDir, 'api.crt'), 'utf8');
  }

  get url(): string {
    return this.apiUrl;
  }

  get pid(): number {
    return this.child.pid!;
  }

  private ready(): Promise<void> {
    const log = createWriteStream(join(this.dataDir, 'log'), { flags: 'a' });
    return new Promise((resolve, reject) => {
      this.child.once('exit', (code) => reject(new Error(`the orchestrator exited with code ${code}`)));
      createInterface({ input: this.child.stdout! }).on('line', (line) => {
        log.write(`${line}\n`);
        if (!line.includes('"event":"ready"')) return;
        const { api_url, agent_port, public_key } = JSON.parse(line);
        this.apiUrl = api_url;
        this.address = { port: agent_port, orchestratorKey: public_key };
        resolve();
      });
    });
  }

  get usage(): Usage {
    return usageOf(this.child.pid!);
  }

  async settledUsage(): Promise<Usage> {
    this.child.kill('SIGUSR2');
    await new Promise((resolve) => setTimeout(resolve, collectMs));
    return this.usage;
  }

  /** Kills the process and starts it again with the same data directory and ports. Resolves when it is ready. */
  async restart(): Promise<void> {
    this.child.removeAllListeners('exit');
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await ended;
    this.child = this.spawn(new URL(this.apiUrl).port, String(this.address.port));
    await this.ready();
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGTERM');
    await ended;
  }
}
