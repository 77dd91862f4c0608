import { isDnfLocked } from './dnf-output.ts';
import { type PackageToolContext, untilUnlocked } from './package-lock.ts';
import { type CommandResult, runCommand } from './run-command.ts';
import { runTransaction, type TransactionResult } from './transaction.ts';

/** dnf as a program. What it is given is checked before: names of packages, versions. */

const environment = { LC_ALL: 'C.UTF-8', TERM: 'dumb', PYTHONUNBUFFERED: '1' };

/** Nobody is there to answer; it waits for nobody by itself, and takes nothing along that nobody asked to go. */
const options = ['--color=never', '--setopt=exit_on_lock=True', '--setopt=clean_requirements_on_remove=False'];

/**
 * One transaction: `install …` or `remove …`. Waits for whoever holds the lock.
 * @throws LeftRunning when the agent stops first
 */
export const dnf = (args: readonly string[], context: PackageToolContext): Promise<TransactionResult> =>
  untilUnlocked(
    () => dnfAtOnce(args, context),
    context,
    ({ output }) => isDnfLocked(output),
  );

/** The same, but it does nothing where somebody holds the lock: while that is waited for, what it would do may change. */
export function dnfAtOnce(args: readonly string[], context: PackageToolContext): Promise<TransactionResult> {
  return runTransaction(
    {
      ...{ program: 'dnf', args: ['-y', ...options, ...args], environment, purpose: 'packages' },
      ...{ timeLimit: context.limits.packageMs, outputCap: context.limits.outputBytes },
      warn: context.warn,
      started: (process) => context.startedProcess(process, 'left'),
      stop: context.stop,
    },
    context.clock,
  );
}

/** What a transaction would do; nothing is. */
export function dnfWould(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask(['--assumeno', ...options, ...args], context);
}

/** Asks what the sources offer, or what is wrong. */
export function dnfQuery(args: readonly string[], context: PackageToolContext): Promise<CommandResult> {
  return ask(['-q', '--color=never', ...args], context);
}

const ask = (args: readonly string[], context: PackageToolContext): Promise<CommandResult> =>
  untilUnlocked(
    () =>
      runCommand(
        {
          ...{ program: 'dnf', args, environment, timeLimit: context.limits.packageMs, outputCap: 16 * 1024 * 1024 },
          started: (process) => context.startedProcess(process),
          scope: { purpose: 'packages', warn: context.warn },
        },
        context.clock,
      ),
    context,
    ({ stdout, stderr }) => isDnfLocked(`${stdout}\n${stderr}`),
  );
