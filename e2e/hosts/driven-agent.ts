import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { build } from 'esbuild';
import { agentBundle } from '../../agent/src/converge/test/bundle.ts';
import type { ContractAgent } from '../../agent/src/converge/test/contract-agent.ts';
import type { Answer, Order } from '../../agent/src/converge/test/driver.ts';
import { root as repository } from '../../tools/suite/cli.ts';
import { type Machine, repositoryInside } from './machine.ts';

const dataDir = '/var/lib/muster-agent';
/** Path of the driver. In /run, so that the file does not count as a change to the root. */
const program = '/run/muster-driver.mjs';

/**
 * The bundled driver, built once for all machines. Loading about 200 separate files would take most of the startup
 * time.
 */
let bundle: Promise<Uint8Array> | null = null;

async function bundled(): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [join(repository, 'agent/src/converge/test/driver.ts')],
    absWorkingDir: repository,
    ...agentBundle,
    write: false,
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error('the build of the driver produced no file');
  return file.contents;
}

/** The real state engine with its providers on a test host. Its driver receives one JSON line per command. */
export class DrivenAgent implements ContractAgent {
  readonly #machine: Machine;
  readonly #process: ChildProcess;
  readonly #answers: AsyncIterator<string>;
  #said = '';

  private constructor(machine: Machine) {
    this.#machine = machine;
    this.#process = machine.begin([`${repositoryInside}/node_modules/.bin/node`, program, dataDir], 'pipe');
    this.#process.stderr?.on('data', (piece: Buffer) => {
      this.#said = (this.#said + piece.toString()).slice(-10_000);
    });
    this.#process.stdin?.on('error', () => {});
    const { stdout } = this.#process;
    if (stdout === null) throw new Error('the driver has no standard output');
    this.#answers = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  /** Starts the engine on a running machine. */
  static async start(machine: Machine): Promise<DrivenAgent> {
    bundle ??= bundled();
    writeFileSync(`${machine.rootPath}${program}`, await bundle);
    const agent = new DrivenAgent(machine);
    await agent.#answer();
    return agent;
  }

  run: ContractAgent['run'] = (operation) => this.#order({ do: 'run', operation });

  killedAt: ContractAgent['killedAt'] = (operation, at) => this.#order({ do: 'killedAt', operation, at });

  interruptedAt: ContractAgent['interruptedAt'] = (operation, at, by) =>
    this.#order({ do: 'interruptedAt', operation, at, by });

  forget: ContractAgent['forget'] = () => this.#order({ do: 'forget' });

  async stop(): Promise<void> {
    this.#process.stdin?.end();
  }

  async #order<T>(order: Order): Promise<T> {
    this.#process.stdin?.write(`${JSON.stringify(order)}\n`);
    return (await this.#answer()) as T;
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#answers.next();
    if (done === true) throw new Error(`the driver in ${this.#machine.name} exited: ${this.#said}`);
    const answer = JSON.parse(value) as Answer;
    if ('fault' in answer)
      throw new Error(`the driver in ${this.#machine.name} failed: ${answer.fault}\n${this.#said}`);
    return answer.answer;
  }
}
