import { type ChildProcess, fork } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { NamedProgram } from './programs.ts';

const signals = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
const parentLookMs = 1_000;

/**
 * Runs programs by name, each in its own process with its own heap. A signal ends the current program, and the remaining
 * ones do not start. Each program detects by its IPC channel that this process was killed.
 * @param command command line of this program, for the usage text
 * @param argv    a name, followed by options for that program; without a name, the options go to every program
 * @param without behavior without a name: list the programs, or run all of them in sequence
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

  let running: ChildProcess | null = null;
  let ended: NodeJS.Signals | null = null;
  const end = (signal: NodeJS.Signals) => {
    ended ??= signal;
    running?.kill(signal);
  };
  for (const signal of signals) process.on(signal, () => end(signal));
  // Detects that npm was killed, because npm does not kill its children.
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
