import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { scratchDirectory } from '../scratch.ts';

/** Debian's package nats-server installs it in a folder that is not in the search path of users. */
const program = ['nats-server', '/usr/sbin/nats-server'].find(
  (path) => spawnSync(path, ['--version'], { stdio: 'ignore' }).status === 0,
);

/**
 * Returns why no NATS server can run on this machine; null if a server can run.
 * @throws Error in CI
 */
export function natsMissing(): string | null {
  if (program !== undefined) return null;
  if (process.env.CI === 'true') throw new Error('nats-server is missing; install the packages of .ci/debian-packages');
  return 'needs nats-server';
}

type CommandOf = (command: string, args: readonly string[]) => [command: string, args: readonly string[]];

/** A NATS server on loopback. Its port stays the same after a restart. */
export class NatsServer {
  readonly #folder = scratchDirectory('muster-nats-');
  readonly #config: string;
  readonly #commandOf: CommandOf;
  #process: ChildProcess | null = null;
  port = -1;
  /** URL of its monitoring endpoint; null unless its configuration sets `http`. */
  monitoringUrl: string | null = null;

  /**
   * @param config statements of its configuration file; `FOLDER` stands for {@link folder}
   * @param commandOf returns the command that runs the server, with the server's PID
   */
  constructor(config = '', commandOf: CommandOf = (command, args) => [command, args]) {
    this.#config = config;
    this.#commandOf = commandOf;
  }

  /** A folder for files that its configuration refers to. */
  get folder(): string {
    return this.#folder;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** PID of the running server. */
  get pid(): number {
    return this.#process!.pid!;
  }

  async start(): Promise<void> {
    const ports = join(this.#folder, 'ports');
    mkdirSync(ports, { recursive: true });
    const config = join(this.#folder, 'nats.conf');
    writeFileSync(config, this.#config.replaceAll('FOLDER', this.#folder));
    const args = ['-c', config, '-a', '127.0.0.1', '-p', String(this.port), '--ports_file_dir', ports];
    const started = spawn(...this.#commandOf(program!, args), { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = started;
    let output = '';
    started.stderr!.on('data', (data: Buffer) => {
      output += data.toString();
    });
    const file = join(ports, `nats-server_${started.pid}.ports`);
    while (!existsSync(file) || readFileSync(file, 'utf8') === '') {
      if (started.exitCode !== null) throw new Error(`nats-server ended: ${output}`);
      await sleep(20);
    }
    const urls = JSON.parse(readFileSync(file, 'utf8')) as { nats: string[]; monitoring?: string[] };
    this.port = Number(new URL(urls.nats[0]!).port);
    this.monitoringUrl = urls.monitoring?.[0] ?? null;
  }

  /** Kills the server without notifying its clients. */
  async kill(): Promise<void> {
    const ending = this.#process;
    this.#process = null;
    if (ending === null || ending.exitCode !== null) return;
    const ended = once(ending, 'exit');
    ending.kill('SIGKILL');
    await ended;
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
