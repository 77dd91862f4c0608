import { type ChildProcess, fork } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { NamedProgram } from './programs.ts';
import type { Result } from './results.ts';

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const parentLookMs = 1_000;

export interface Ended {
  code: number;
  /** The program's figures; null if it exited before it returned them. */
  result: Result | null;
}

/**
 * Runs programs one at a time, each in its own process with its own heap. A signal terminates the current program and
 * cancels the remaining ones. Each program detects through its IPC channel that this process was killed.
 */
export class Launcher {
  #running: ChildProcess | null = null;
  #signal: NodeJS.Signals | null = null;

  constructor() {
    for (const signal of signals) process.on(signal, () => this.#end(signal));
    // Checks periodically whether npm has exited, because npm does not kill its child processes.
    const parent = process.ppid;
    if (process.env.npm_lifecycle_event !== undefined)
      setInterval(() => process.ppid !== parent && this.#end('SIGTERM'), parentLookMs).unref();
  }

  #end(signal: NodeJS.Signals): void {
    this.#signal ??= signal;
    this.#running?.kill(signal);
  }

  /** Exit code of this process if a signal stops it; null otherwise. */
  get ended(): number | null {
    return this.#signal === null ? null : 128 + constants.signals[this.#signal];
  }

  /** Runs a program until it exits. */
  async run({ program, options: own = [] }: NamedProgram, options: readonly string[]): Promise<Ended> {
    const child = fork(join(import.meta.dirname, `../${program}.ts`), [...own, ...options], { stdio: 'inherit' });
    this.#running = child;
    let result: Result | null = null;
    child.on('message', (message) => {
      result = message as Result;
    });
    // The IPC channel closes after its last message, which may arrive after the process has exited.
    const channelEnd = new Promise((resolve) => child.once('disconnect', resolve));
    const code = await new Promise<number>((resolve) =>
      child.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal!])),
    );
    if (child.connected) await channelEnd;
    return { code, result };
  }
}

/**
 * Runs the program that the first argument names, with the other arguments as its options. Without a name, prints the
 * names, or runs all programs in sequence if `without` is `all`.
 * @param command command line of this program, for the usage text
 */
export async function launch(
  command: string,
  programs: Readonly<Record<string, NamedProgram>>,
  argv: readonly string[],
  without: 'list' | 'all',
): Promise<void> {
  const named = argv[0] !== undefined && !argv[0].startsWith('-');
  const name = named ? argv[0]! : '';
  const options = named ? argv.slice(1) : argv;
  const all = !named && without === 'all' && !options.includes('--help');
  if (!all && !Object.hasOwn(programs, name)) {
    if (named) console.error(`Unknown name "${name}". Choose one of the names below.`);
    console.log(`Usage: ${command}\n`);
    for (const [one, { what }] of Object.entries(programs)) console.log(`  ${one.padEnd(15)}${what}`);
    process.exitCode = named ? 2 : 0;
    return;
  }
  const launcher = new Launcher();
  for (const one of all ? Object.keys(programs) : [name]) {
    if (all) console.log(`\n── ${one}`);
    const { code } = await launcher.run(programs[one]!, options);
    process.exitCode ||= code;
    if (launcher.ended !== null) {
      process.exitCode = launcher.ended;
      return;
    }
  }
}
