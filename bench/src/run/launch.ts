import { type ChildProcess, fork } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { NamedProgram } from './programs.ts';

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const parentLookMs = 1_000;

/**
 * Runs programs by name, each in its own process, so that none inherits another's heap. A signal ends the current program
 * and starts no other. The IPC channel lets each program notice that this process was killed.
 * @param command the command line of this program, for the list of names
 * @param argv    a name, then options to pass on; options alone go to every program
 * @param without behavior without a name: list the programs, or run all in turn
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
    if (named) console.error(`There is no ${name}.`);
    console.log(`Usage: ${command}\n`);
    for (const [one, { what }] of Object.entries(programs)) console.log(`  ${one.padEnd(15)}${what}`);
    process.exitCode = named ? 2 : 0;
    return;
  }

  let running: ChildProcess | null = null;
  let ended: NodeJS.Signals | null = null;
  const end = (signal: NodeJS.Signals) => {
    ended ??= signal;
    running?.kill(signal);
  };
  for (const signal of signals) process.on(signal, () => end(signal));
  // A killed npm does not kill its children.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid !== parent && end('SIGTERM'), parentLookMs).unref();

  for (const one of all ? Object.keys(programs) : [name]) {
    const { program, options: own = [] } = programs[one]!;
    if (all) console.log(`\n── ${one}`);
    running = fork(join(import.meta.dirname, `../${program}.ts`), [...own, ...options], { stdio: 'inherit' });
    const code = await new Promise<number>((resolve) =>
      running!.once('exit', (code, signal) => resolve(code ?? 128 + constants.signals[signal!])),
    );
    process.exitCode ||= code;
    if (ended !== null) {
      process.exitCode = 128 + constants.signals[ended];
      return;
    }
  }
}
