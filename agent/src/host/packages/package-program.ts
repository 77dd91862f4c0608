import { type CommandResult, runCommand } from '../processes/run-command.ts';
import { runTransaction, type TransactionResult } from '../processes/transaction.ts';
import { type PackageToolContext, untilUnlocked } from './package-lock.ts';

/** Runs the program of a package manager. Callers must validate the arguments, which are package names and versions. */

export interface PackageProgram {
  program: string;
  environment: Readonly<Record<string, string>>;
  /** Reports whether the output means that another process held the lock. */
  isLocked(output: string): boolean;
}

/** Maximum number of bytes of an answer. */
const answerCap = 16 * 1024 * 1024;

/**
 * Runs one transaction. Does not wait for the lock.
 * @param input standard input; default: empty
 * @throws LeftRunning if the agent stops first
 */
export const change = (
  { program, environment }: PackageProgram,
  args: readonly string[],
  context: PackageToolContext,
  input?: string,
): Promise<TransactionResult> =>
  runTransaction(
    {
      ...{ program, args, environment, purpose: 'packages' },
      ...(input === undefined ? {} : { input }),
      ...{ timeLimit: context.limits.packageMs, outputCap: context.limits.outputBytes },
      warn: context.warn,
      started: (process) => context.startedProcess(process, 'left'),
      stop: context.stop,
    },
    context.clock,
  );

/**
 * Runs one transaction. Waits for the lock.
 * @throws LeftRunning if the agent stops first
 */
export const changeUnlocked = (
  program: PackageProgram,
  args: readonly string[],
  context: PackageToolContext,
): Promise<TransactionResult> =>
  untilUnlocked(
    () => change(program, args, context),
    context,
    ({ output }) => program.isLocked(output),
  );

/** Runs a query or a dry run. Waits for the lock. */
export const ask = (
  { program, environment, isLocked }: PackageProgram,
  args: readonly string[],
  context: PackageToolContext,
): Promise<CommandResult> =>
  untilUnlocked(
    () =>
      runCommand(
        {
          ...{ program, args, environment, timeLimit: context.limits.packageMs, outputCap: answerCap },
          started: (process) => context.startedProcess(process),
          scope: { purpose: 'packages', warn: context.warn },
        },
        context.clock,
      ),
    context,
    ({ stdout, stderr }) => isLocked(`${stdout}\n${stderr}`),
  );
